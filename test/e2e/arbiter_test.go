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

var _ = Describe("An arbiter", Label("arbiter", "etcd"), func() {
	It("is installed beside two masters, and replaced by another, without a loss of quorum or of a write", func(ctx SpecContext) {
		onlySimulated() // the real service here is from before there were arbiters
		cluster := apply(ctx, "arbiter", lab.Mutations{Namespace: "arbiter", ClusterName: "edge", EtcdMembers: true})
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		expectWell(ctx, cluster)
		infrastructure := &configv1.Infrastructure{}
		Expect(workloadOf(cluster).Get(ctx, types.NamespacedName{Name: "cluster"}, infrastructure)).To(Succeed())
		Expect(infrastructure.Status.ControlPlaneTopology).To(Equal(configv1.HighlyAvailableArbiterMode))
		before := state(ctx, cluster).Machines
		gone := arbiterOf(before)
		expectArbiterNode(ctx, cluster, gone)

		Expect(cluster.MoveEtcdLeader(ctx, gone.Status.NodeRef.Name)).To(Succeed())
		writer := cluster.StartWriting(ctx)
		census := takeCensus(ctx, cluster)
		deleteMachines(ctx, cluster, gone)
		waitReplaced(ctx, cluster, gone)
		expectWell(ctx, cluster)

		after := state(ctx, cluster).Machines
		expectArbiterNode(ctx, cluster, arbiterOf(after))
		Expect(arbiterOf(after).Agent.Status.Kind).To(Equal("AddToExistingClusterHost"), "it has joined the installed cluster")
		for _, m := range before {
			Expect(slices.ContainsFunc(after, func(other lab.Machine) bool { return other.UID == m.UID })).To(Equal(m.UID != gone.UID),
				"the masters stay")
		}
		Expect(census()).To(Equal(2), "voters, when they were fewest")
		Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
		expectNothingLost(ctx, cluster, writer)
	}, NodeTimeout(installTimeout+replaceTimeout+soon))

	It("is refused by an assisted-service that does not know it", func(ctx SpecContext) {
		if laboratory.Service != nil {
			Skip("the simulated assisted-service knows arbiters")
		}
		cluster := apply(ctx, "arbiter", lab.Mutations{Namespace: "arbiter-unknown", ClusterName: "unknown"})
		Expect(waitReason(ctx, cluster, controlplanev1.InstalledCondition,
			controlplanev1.InvalidConfigurationReason)).To(ContainSubstring("dedicated control plane nodes"))
		wait(ctx, cluster, "hosts that wait", func(s *lab.State) bool { return len(s.Agents) == 3 })
		for _, agent := range state(ctx, cluster).Agents {
			Expect(agent.Spec.ClusterDeploymentName).To(BeNil())
			Expect(agent.Spec.Approved).To(BeFalse())
		}
	}, NodeTimeout(installTimeout))
})

// arbiterOf is the one arbiter of a cluster.
func arbiterOf(machines []lab.Machine) lab.Machine {
	GinkgoHelper()
	arbiters := slices.DeleteFunc(slices.Clone(machines), func(m lab.Machine) bool { return m.Role() != "arbiter" })
	Expect(arbiters).To(HaveLen(1))
	return arbiters[0]
}

// expectArbiterNode checks that a host is an arbiter, and the one that was meant for it.
func expectArbiterNode(ctx SpecContext, cluster *lab.Cluster, m lab.Machine) {
	GinkgoHelper()
	expectAgent(m)
	expectNode(ctx, workloadOf(cluster), m)
	Expect(m.Host.Labels).To(HaveKeyWithValue("example.com/size", "small"), "chosen by the template of the arbiter")
}
