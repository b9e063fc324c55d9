package e2e

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("An arbiter", Label("arbiter", "etcd", "nightly"), func() {
	It("is installed with two masters, and replaced by another arbiter, without a loss of quorum or of a write", func(ctx SpecContext) {
		onlySimulated() // the real service here is older than arbiters
		cluster := apply(ctx, "arbiter", lab.Mutations{Namespace: "arbiter", ClusterName: "edge", EtcdMembers: true})
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		expectHealthy(ctx, cluster)
		infrastructure := &configv1.Infrastructure{}
		Expect(workloadOf(cluster).Get(ctx, types.NamespacedName{Name: "cluster"}, infrastructure)).To(Succeed())
		Expect(infrastructure.Status.ControlPlaneTopology).To(Equal(configv1.HighlyAvailableArbiterMode))
		before := state(ctx, cluster).Machines
		replaced := arbiterOf(before)
		expectArbiterNode(ctx, cluster, replaced)

		Expect(cluster.MoveEtcdLeader(ctx, replaced.Status.NodeRef.Name)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		fewestVoters := countVoters(ctx, cluster)
		deleteMachines(ctx, cluster, replaced)
		waitReplaced(ctx, cluster, replaced)
		expectHealthy(ctx, cluster)

		after := state(ctx, cluster).Machines
		expectArbiterNode(ctx, cluster, arbiterOf(after))
		Expect(arbiterOf(after).Agent.Status.Kind).To(Equal("AddToExistingClusterHost"), "the arbiter has joined the installed cluster")
		for _, m := range before {
			Expect(slices.ContainsFunc(after, func(other lab.Machine) bool { return other.UID == m.UID })).To(Equal(m.UID != replaced.UID),
				"the masters stay")
		}
		Expect(fewestVoters()).To(Equal(2), "the smallest number of voters")
		Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
		expectNothingLost(ctx, cluster, writer)
	}, NodeTimeout(installTimeout+replaceTimeout+soon))

	It("is rejected by an assisted-service without arbiters", func(ctx SpecContext) {
		if laboratory.Service != nil {
			Skip("the simulated assisted-service knows arbiters")
		}
		cluster := apply(ctx, "arbiter", lab.Mutations{Namespace: "arbiter-unknown", ClusterName: "unknown"})
		Expect(waitReason(ctx, cluster, controlplanev1.InstalledCondition,
			controlplanev1.InvalidConfigurationReason)).To(ContainSubstring("dedicated control plane nodes"))
		wait(ctx, cluster, "waiting hosts", func(s *lab.State) bool { return len(s.Agents) == 3 })
		for _, agent := range state(ctx, cluster).Agents {
			Expect(agent.Spec.ClusterDeploymentName).To(BeNil())
			Expect(agent.Spec.Approved).To(BeFalse())
		}
	}, NodeTimeout(installTimeout))
})

// arbiterOf returns the only arbiter of a cluster.
func arbiterOf(machines []lab.Machine) lab.Machine {
	GinkgoHelper()
	arbiters := slices.DeleteFunc(slices.Clone(machines), func(m lab.Machine) bool { return m.Role() != "arbiter" })
	Expect(arbiters).To(HaveLen(1))
	return arbiters[0]
}

// expectArbiterNode checks that a host is an arbiter, and fits the template of the arbiter.
func expectArbiterNode(ctx SpecContext, cluster *lab.Cluster, m lab.Machine) {
	GinkgoHelper()
	expectAgent(m)
	expectNode(ctx, workloadOf(cluster), m)
	Expect(m.Host.Labels).To(HaveKeyWithValue("example.com/size", "small"), "chosen by the template of the arbiter")
}
