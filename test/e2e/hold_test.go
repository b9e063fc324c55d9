package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("An installation", Label("hold"), func() {
	It("does not start while it is on hold", func(ctx SpecContext) {
		cluster := apply(ctx, "compact", lab.Mutations{
			Namespace: "hold", ClusterName: "patient", Edit: edit(controlPlaneKind, true, "spec", "config", "holdInstallation"),
		})
		waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.InstallationOnHoldReason)
		wait(ctx, cluster, "ready to install", allApproved)
		s := state(ctx, cluster)
		Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationPending))
		// The machine that runs the tests has no record of the cluster, and perhaps no DNS.
		told := lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.PreflightPassedCondition)
		Expect(told.Reason).To(Or(Equal(controlplanev1.PreflightWarningsReason), Equal(controlplanev1.PreflightIncompleteReason)))
		Expect(told.Message).To(ContainSubstring("api.patient."))
		patch(ctx, controlPlaneOf(cluster), `{"spec":{"config":{"holdInstallation":false}}}`)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		wait(ctx, cluster, "told no more of what looks wrong: it is installed", func(s *lab.State) bool {
			return lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.PreflightPassedCondition).Reason == ""
		})
	}, NodeTimeout(2*installTimeout))

	It("goes on without us while its Cluster is paused, and we catch up afterwards", Label("nightly"), func(ctx SpecContext) {
		cluster := apply(ctx, "sno", lab.Mutations{Namespace: "pause", ClusterName: "sleeper", HoldAPI: true})
		wait(ctx, cluster, "installing", installing)
		Expect(cluster.Pause(ctx, true)).To(Succeed())
		s := wait(ctx, cluster, "paused", func(s *lab.State) bool {
			return lab.Condition(s.ControlPlane.Status.Conditions, "Paused").Status == "True" &&
				lab.Condition(s.Machines[0].Config.Status.Conditions, "Paused").Status == "True"
		})
		since := time.Now()
		cluster.ReleaseAPI()
		wait(ctx, cluster, "installed by assisted-service", func(s *lab.State) bool {
			return s.Installation.Status.DebugInfo.State == "adding-hosts"
		})
		Expect(state(ctx, cluster).ControlPlane.ResourceVersion).To(Equal(s.ControlPlane.ResourceVersion))
		Expect(writesIn(cluster.Namespace, since)).To(Equal(audit.Requests(nil)), "writes while the Cluster is paused")
		Expect(cluster.Pause(ctx, false)).To(Succeed())
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
	}, NodeTimeout(2*installTimeout))
})
