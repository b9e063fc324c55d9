package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift/versionoperator"
)

var _ = Describe("A cluster whose workers are paused", Label("upgrade", "nightly"), func() {
	// An even minor version, the next one, the next even one, and one that the kubelets of the first do not
	// support.
	const first, between, second, beyond, channel = "4.20.0", "4.21.0", "4.22.0", "4.23.0", "eus-4.22"
	It("is upgraded over two minor versions, and restarts its workers once", func(ctx SpecContext) {
		onlySimulated()
		_, err := laboratory.Registry.Publish(first)
		Expect(err).NotTo(HaveOccurred())
		cluster := apply(ctx, "ha", lab.Mutations{
			Namespace: "eus", ClusterName: "eus",
			Edit: edit("OpenshiftAssistedControlPlane", first, "spec", "distributionVersion"),
		})
		waitAvailable(ctx, cluster)
		before := state(ctx, cluster)
		boots := bootCounts(before)
		for _, version := range []string{between, second, beyond} {
			publish(cluster, version, channel)
		}
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, true)).To(Succeed())

		for i, version := range []string{between, second} {
			By("upgrading the control plane to " + version)
			cluster.Versions().Block("machine-config")
			changeSpec(ctx, cluster, `{"distributionVersion":"`+version+`","upgrade":{"channel":"`+channel+`"}}`)
			waitRollingOut(ctx, cluster, "waiting on machine-config")
			Expect(waitRollingOut(ctx, cluster, "MachineConfigPool worker is paused")).To(And(ContainSubstring("to v"+version),
				ContainSubstring("oc patch machineconfigpool worker")))
			cluster.Versions().Recover("machine-config")
			expectUpgraded(ctx, cluster, version)
			expectFollowing(ctx, cluster, "MachineConfigPool worker is paused", versionoperator.WorkerPool)
			Expect(nodeReleases(ctx, cluster)).To(ConsistOf(version, version, version, first, first))
			expectUnwiped(ctx, cluster, before)
			expectBoots(ctx, cluster, boots, i+1, 0)
		}

		By("requesting one more, for which its kubelets are too old")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+beyond+`"}`)
		Expect(waitReason(ctx, cluster, controlplanev1.MachinesUpToDateCondition,
			controlplanev1.UpgradeRefusedReason)).To(ContainSubstring("Kubelet minor versions on nodes"))
		waitRollingOut(ctx, cluster, "MachineConfigPool worker is paused")
		changeSpec(ctx, cluster, `{"distributionVersion":"`+second+`"}`)
		expectUpgraded(ctx, cluster, second)

		By("upgrading the workers, with restarted managers")
		kill(ctx)
		Expect(cluster.Versions().PausePool(ctx, versionoperator.WorkerPool, false)).To(Succeed())
		Eventually(ctx, func() ([]string, error) { return nodeReleases(ctx, cluster) }).WithTimeout(installTimeout).Should(HaveEach(second))
		expectFollowing(ctx, cluster, "")
		expectUpgraded(ctx, cluster, second)
		expectUnwiped(ctx, cluster, before)
		expectBoots(ctx, cluster, boots, 2, 1)
	}, NodeTimeout(3*installTimeout))
})

// expectFollowing waits until a finished control plane reports the pools that lag behind, and their message;
// empty: none.
func expectFollowing(ctx context.Context, cluster *lab.Cluster, message string, pools ...string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		c := lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RollingOutCondition)
		g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
		g.Expect(c.Message).To(ContainSubstring(message))
		if message == "" {
			g.Expect(c.Message).To(BeEmpty())
		}
		g.Expect(s.ControlPlane.Status.PoolsBehind).To(ConsistOf(pools))
	}).Should(Succeed())
}

// expectBoots checks how often the hosts of masters and workers were booted since the count in boots.
func expectBoots(ctx context.Context, cluster *lab.Cluster, boots map[string]int, masters, workers int) {
	GinkgoHelper()
	for _, m := range state(ctx, cluster).Machines {
		more := workers
		if m.IsControlPlane() {
			more = masters
		}
		Expect(rackHost(m).Boots()).To(HaveLen(boots[m.Name]+more), "boots of %s", m.Name)
	}
}
