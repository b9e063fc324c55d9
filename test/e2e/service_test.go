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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("assisted-service", Label("service"), Serial, func() {
	It("may be away before and during an installation, and so may its database: all goes on by itself", func(ctx SpecContext) {
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
		Expect(s.InfraEnvs).To(BeEmpty(), "a cluster that assisted-service has not registered may be refused: no host boots for it")
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
		wait(ctx, cluster, "installing", func(s *lab.State) bool {
			startAgain(ctx, service)
			return installing(s)
		})

		By("restarting the database, and then killing the service, while the cluster is installed")
		database.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		service.Kill()
		cluster.ReleaseAPI()
		Consistently(ctx, func() error { return laboratory.Failure() }).WithTimeout(quiet).WithPolling(time.Second).Should(Succeed())
		Expect(service.Start(ctx)).To(Succeed())
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)

		By("taking the database away after the installation: nothing happens to the cluster")
		expectInstalledWhileCleared(ctx, cluster)

		By("restarting both")
		service.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		Expect(service.Start(ctx)).To(Succeed())
		wait(ctx, cluster, "known to assisted-service again", func(s *lab.State) bool { return s.Installation.Status.DebugInfo.State != "" })
		expectNotTouched(ctx, cluster)
		expectDeleted(ctx, cluster)
	}, NodeTimeout(3*installTimeout))
})

// startAgain starts a process that ended by itself, as the kubelet does with containers. A panic in one of its
// controllers ends assisted-service (controller-runtime v0.16), and its database may be gone at any moment of theirs.
func startAgain(ctx context.Context, p *process.Process) {
	GinkgoHelper()
	if p.Running() {
		return
	}
	GinkgoWriter.Printf("%s ended by itself, and is started again\n", p.Name)
	Expect(p.Start(ctx)).To(Succeed())
}

// expectInstalledWhileCleared takes its database from assisted-service, and makes it look at an installed cluster. The service clears
// what it has shown of the cluster, which is no reason to doubt the cluster, or to write to the service.
func expectInstalledWhileCleared(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	service, database := laboratory.Assisted.Process(), laboratory.Assisted.Database()
	before := state(ctx, cluster).Installation
	takeAway := func() {
		database.Stop()
		look := `{"metadata":{"annotations":{"example.com/look":"` + time.Now().String() + `"}}}`
		patch(ctx, before.DeepCopy(), look)
		patch(ctx, &hivev1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}, look)
	}
	takeAway()
	wait(ctx, cluster, "cleared by assisted-service", func(s *lab.State) bool {
		if service.Died() {
			Expect(database.Start(ctx)).To(Succeed())
			startAgain(ctx, service)
			takeAway()
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
	It("tells the host and the reason, and passes when its cause does", func(ctx SpecContext) {
		const reason = "registry.example.com does not answer"
		cluster := apply(ctx, "sno", lab.Mutations{
			Namespace: "unprepared", ClusterName: "waiting", Edit: edit(controlPlaneKind, true, "spec", "config", "holdInstallation"),
		})
		s := wait(ctx, cluster, "approved", allApproved)
		host := laboratory.Rack.Host(path.Join(s.Machines[0].Host.Namespace, s.Machines[0].Host.Name))
		host.FailImages(reason)
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		message := waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason)
		// assisted-service tells which images the host lacks, and not what the host said of them.
		Expect(message).To(And(ContainSubstring(s.Machines[0].Host.Name), ContainSubstring("Failed to fetch container images")))
		// The service prepares again each second, and each attempt goes through states that are told.
		expectNoHotLoop(ctx, map[*lab.Cluster]int{cluster: 1})
		host.FailImages("")
		waitAvailable(ctx, cluster)
		Expect(host.Boots()).To(HaveExactElements(HaveField("System", hosts.Discovery), HaveField("System", hosts.Installed)))
	}, NodeTimeout(2*installTimeout))
})
