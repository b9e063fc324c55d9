package e2e

import (
	"path"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
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
		s := wait(ctx, cluster, "waiting for images", func(s *lab.State) bool {
			return len(s.InfraEnvs) == 3 && configHas(s, bootstrapv1.WaitingForDiscoveryImageReason)
		})
		ready := lab.Condition(s.Machines[0].Config.Status.Conditions, bootstrapv1.ReadyCondition)
		Expect(ready.Message).To(ContainSubstring("assisted-service"), "what is waited for")
		Expect(service.Start(ctx)).To(Succeed())
		wait(ctx, cluster, "discovering hosts", func(s *lab.State) bool { return len(s.Agents) > 0 })

		By("restarting the database while hosts are discovered")
		database.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		wait(ctx, cluster, "installing", installing)

		By("killing the service while the cluster is installed")
		service.Kill()
		cluster.ReleaseAPI()
		Consistently(ctx, func() error { return laboratory.Failure() }).WithTimeout(quiet).WithPolling(time.Second).Should(Succeed())
		Expect(service.Start(ctx)).To(Succeed())
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)

		By("restarting both after the installation: nothing happens to the cluster")
		database.Stop()
		service.Kill()
		Expect(database.Start(ctx)).To(Succeed())
		Expect(service.Start(ctx)).To(Succeed())
		expectNotTouched(ctx, cluster)
		expectDeleted(ctx, cluster)
	}, NodeTimeout(3*installTimeout))
})

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
		Expect(message).To(ContainSubstring(s.Machines[0].Host.Name))
		expectNoHotLoop(ctx, cluster)
		host.FailImages("")
		waitAvailable(ctx, cluster)
		Expect(host.Boots()).To(HaveExactElements(HaveField("System", hosts.Discovery), HaveField("System", hosts.Installed)))
	}, NodeTimeout(2*installTimeout))
})
