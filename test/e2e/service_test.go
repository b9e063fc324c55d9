package e2e

import (
	"context"
	"path"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("assisted-service", Label("service"), Serial, func() {
	It("may be down before and during an installation, and so may its database: all continues automatically", func(ctx SpecContext) {
		onlyReal()
		service, database := laboratory.Assisted.Process(), laboratory.Assisted.Database()
		DeferCleanup(func(ctx SpecContext) {
			Expect(database.Start(ctx)).To(Succeed())
			Expect(service.Start(ctx)).To(Succeed())
		}, NodeTimeout(soon))

		By("stopping the service before a cluster is applied")
		service.Stop()
		cluster := apply(ctx, "compact", lab.Mutations{Namespace: "outage", ClusterName: "stoic", HoldAPI: true})
		waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.WaitingForAssistedServiceReason)
		s := wait(ctx, cluster, "waiting for its registration", func(s *lab.State) bool {
			return len(s.Machines) == 3 && configHas(s, bootstrapv1.WaitingForAgentClusterInstallReason)
		})
		Expect(s.InfraEnvs).To(BeEmpty(), "assisted-service may reject a cluster before its registration, so no host boots for it")
		for _, m := range s.Machines {
			if m.Config == nil {
				continue
			}
			ready := lab.Condition(m.Config.Status.Conditions, bootstrapv1.ReadyCondition)
			if ready.Reason == bootstrapv1.WaitingForAgentClusterInstallReason { // the other configs may not have a condition yet
				Expect(ready.Message).To(ContainSubstring("assisted-service has not registered the cluster"))
			}
		}
		Expect(service.Start(ctx)).To(Succeed())
		wait(ctx, cluster, "discovering hosts", func(s *lab.State) bool { return len(s.Agents) > 0 })

		By("restarting the database while hosts are discovered")
		database.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		wait(ctx, cluster, "installing", installing)

		By("restarting the database, and then killing the service, while the cluster is installed")
		database.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		service.Kill()
		cluster.ReleaseAPI()
		Consistently(ctx, func() error { return laboratory.Failure() }).WithTimeout(quiet).WithPolling(time.Second).Should(Succeed())
		Expect(service.Start(ctx)).To(Succeed())
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)

		By("stopping the database after the installation: the cluster does not change")
		expectInstalledWhileCleared(ctx, cluster)

		By("restarting both")
		service.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		Expect(service.Start(ctx)).To(Succeed())
		wait(ctx, cluster, "known to assisted-service again", func(s *lab.State) bool { return s.Installation.Status.DebugInfo.State != "" })
		expectUnchanged(ctx, cluster)
		expectDeleted(ctx, cluster)
	}, NodeTimeout(3*installTimeout))
})

// expectInstalledWhileCleared stops the database of assisted-service, and makes the service reconcile an
// installed cluster. The service clears the status of the cluster. The managers must neither doubt the cluster,
// nor write to the service.
func expectInstalledWhileCleared(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	service, database := laboratory.Assisted.Process(), laboratory.Assisted.Database()
	before := state(ctx, cluster).Installation
	stopDatabase := func() {
		database.Stop()
		touch := `{"metadata":{"annotations":{"example.com/look":"` + time.Now().String() + `"}}}`
		patch(ctx, before.DeepCopy(), touch)
		patch(ctx, &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}, touch)
	}
	stopDatabase()
	run := service.PID()
	wait(ctx, cluster, "cleared by assisted-service", func(s *lab.State) bool {
		// A service that restarts without its database does not serve.
		if service.PID() != run {
			Expect(database.Start(ctx)).To(Succeed())
			Eventually(ctx, service.Ready).WithTimeout(soon).Should(Succeed())
			run = service.PID()
			stopDatabase()
		}
		return s.Installation.Status.DebugInfo.State == ""
	})
	Consistently(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
		g.Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.AvailableCondition).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(s.Installation.Spec).To(Equal(before.Spec))
	}).WithTimeout(quiet).Should(Succeed())
}

var _ = Describe("A failed preparation", Label("failure"), func() {
	It("reports the host and the reason, and ends with its cause", func(ctx SpecContext) {
		const reason = "registry.example.com does not answer"
		cluster := apply(ctx, "sno", lab.Mutations{
			Namespace: "unprepared", ClusterName: "waiting", Edit: edit(controlPlaneKind, true, "spec", "config", "holdInstallation"),
		})
		s := wait(ctx, cluster, "approved", allApproved)
		host := laboratory.Rack.Host(path.Join(s.Machines[0].Host.Namespace, s.Machines[0].Host.Name))
		host.FailImages(reason)
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		message := waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason)
		// assisted-service reports the images that the host lacks, but not the errors of the host.
		Expect(message).To(And(ContainSubstring(s.Machines[0].Host.Name), ContainSubstring("Failed to fetch container images")))
		// The service prepares again each second, and each attempt goes through states that are reported.
		expectNoHotLoop(ctx, map[*lab.Cluster]int{cluster: 1})
		host.FailImages("")
		waitAvailable(ctx, cluster)
		Expect(host.Boots()).To(HaveExactElements(HaveField("System", hosts.Discovery), HaveField("System", hosts.Installed)))
	}, NodeTimeout(2*installTimeout))
})
