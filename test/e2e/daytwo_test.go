package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Workers", Label("workers"), func() {
	It("join when the cluster accepts hosts, whether they appear during the installation or after", func(ctx SpecContext) {
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "workers", ClusterName: "grow", ExtraHosts: 2, HoldAPI: true})
		wait(ctx, cluster, "installing", installing)

		By("adding one during the installation: it is discovered, and waits")
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		s := wait(ctx, cluster, "keeping the new worker waiting", func(s *lab.State) bool {
			return configHas(s, bootstrapv1.ClusterNotAcceptingHostsReason)
		})
		late := machineWith(s, bootstrapv1.ClusterNotAcceptingHostsReason)
		Expect(late.Agent).NotTo(BeNil(), "the host is known")
		Expect(late.Agent.Spec.ClusterDeploymentName).To(BeNil())
		Expect(late.Agent.Spec.Approved).To(BeFalse())
		Expect(lab.Condition(late.Config.Status.Conditions, bootstrapv1.ReadyCondition).Message).To(ContainSubstring("accept"))
		Expect(s.Installation.Spec.ProvisionRequirements.WorkerAgents).To(Equal(2), "it does not belong to day 1")

		By("letting the installation end")
		cluster.ReleaseAPI()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 1)

		By("adding one afterwards")
		Expect(cluster.Scale(ctx, 4)).To(Succeed())
		wait(ctx, cluster, "complete", func(s *lab.State) bool { return s.Wanted == 7 && s.Available() })
		expectInstalled(ctx, cluster, 2)

		By("removing one: its Node and its Agent go")
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		wait(ctx, cluster, "smaller", func(s *lab.State) bool { return len(s.Machines) == 6 && len(s.Agents) == 6 && s.Available() })
		expectInstalled(ctx, cluster, 1)
	}, NodeTimeout(3*installTimeout))
})

// installing is true once hosts are being written.
func installing(s *lab.State) bool {
	return s.ControlPlane != nil && s.ControlPlane.Status.Installation.Phase == controlplanev1.InstallationInstalling
}

// machineWith returns the first Machine whose config has the reason.
func machineWith(s *lab.State, reason string) lab.Machine {
	GinkgoHelper()
	for _, m := range s.Machines {
		if m.Config != nil && lab.Condition(m.Config.Status.Conditions, bootstrapv1.ReadyCondition).Reason == reason {
			return m
		}
	}
	Fail("no Machine has " + reason)
	return lab.Machine{}
}
