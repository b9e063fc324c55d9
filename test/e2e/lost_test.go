package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("An installed cluster", Label("lost"), func() {
	It("that assisted-service registers anew is neither installed again nor given hosts", func(ctx SpecContext) {
		onlySimulated()
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "lost", ClusterName: "forgotten", ExtraHosts: 1, Edit: noWorkers})
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		before := state(ctx, cluster).Installation.Spec

		laboratory.Service.LoseCluster(cluster.Key())
		wait(ctx, cluster, "registered anew", func(s *lab.State) bool { return s.Installation.Status.DebugInfo.State == "insufficient" })
		message := waitReason(ctx, cluster, controlplanev1.InstalledCondition, controlplanev1.RegisteredAnewReason)
		Expect(message).To(ContainSubstring("import"), "what to do")

		By("adding a worker: its host is discovered, and not given to a cluster that would be installed")
		Expect(cluster.Scale(ctx, 1)).To(Succeed())
		wait(ctx, cluster, "keeping the worker waiting", func(s *lab.State) bool { return configHas(s, bootstrapv1.ClusterRegisteredAnewReason) })
		Consistently(ctx, func(g Gomega) {
			s, err := cluster.State(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Installation.Spec).To(Equal(before))
			g.Expect(s.ControlPlane.Status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
			for _, m := range s.Machines {
				if m.Agent != nil && !m.Running() {
					g.Expect(m.Agent.Spec.ClusterDeploymentName).To(BeNil())
					g.Expect(m.Agent.Spec.Approved).To(BeFalse())
				}
			}
		}).WithTimeout(quiet).Should(Succeed())
	}, NodeTimeout(2*installTimeout))
})
