package cluster

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// poolWith is a pool of one Node, which is as it is to be.
func poolWith(change func(*machineconfigurationv1.MachineConfigPool)) *machineconfigurationv1.MachineConfigPool {
	p := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker", Generation: 3}}
	p.Status.MachineCount, p.Status.ObservedGeneration = 1, 3
	p.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{{Type: machineconfigurationv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
	if change != nil {
		change(p)
	}
	return p
}

func poolPaused(p *machineconfigurationv1.MachineConfigPool) { p.Spec.Paused = true }

func poolBehind(p *machineconfigurationv1.MachineConfigPool) {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
}

func TestWhatMattersOfAPool(t *testing.T) {
	is := func(p *machineconfigurationv1.MachineConfigPool, kind machineconfigurationv1.MachineConfigPoolConditionType, message string) {
		p.Status.Conditions = append(p.Status.Conditions, machineconfigurationv1.MachineConfigPoolCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Reason", Message: message})
	}
	for situation, tc := range map[string]struct {
		change func(*machineconfigurationv1.MachineConfigPool)
		pool   facts.Pool
	}{
		"all Nodes are as they are to be": {nil, facts.Pool{}},
		"paused":                          {poolPaused, facts.Pool{Paused: true}},
		"paused, without Nodes": {func(p *machineconfigurationv1.MachineConfigPool) {
			poolPaused(p)
			poolBehind(p)
			p.Status.MachineCount = 0
		}, facts.Pool{}},
		"a Node is not as it is to be": {poolBehind, facts.Pool{Behind: true}},
		"it was not looked at yet":     {func(p *machineconfigurationv1.MachineConfigPool) { p.Generation++ }, facts.Pool{Behind: true}},
		"degraded by a Node": {func(p *machineconfigurationv1.MachineConfigPool) {
			is(p, machineconfigurationv1.MachineConfigPoolDegraded, "")
			p.Status.Conditions[1].Reason = ""
			is(p, machineconfigurationv1.MachineConfigPoolNodeDegraded, "Node w0 cannot be drained")
		}, facts.Pool{Degraded: "Node w0 cannot be drained"}},
		"degraded without a word": {func(p *machineconfigurationv1.MachineConfigPool) {
			is(p, machineconfigurationv1.MachineConfigPoolDegraded, "")
			p.Status.Conditions[1].Reason = ""
		}, facts.Pool{Degraded: "it does not say why"}},
	} {
		t.Run(situation, func(t *testing.T) {
			tc.pool.Name = "worker"
			NewWithT(t).Expect(PoolOf(poolWith(tc.change))).To(Equal(tc.pool))
		})
	}
}

func TestPoolsAreFollowedWhileTheClusterIsUpgraded(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.put(poolsPath, poolWith(poolPaused))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).PoolsKnown).To(BeFalse())
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring(poolsPath)), "nobody upgrades it")

	upgrading := clusterVersionOf("4.19.3")
	upgrading.Status.History = slices.Insert(upgrading.Status.History, 0, configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.20.1"})
	s.put(versionsPath, upgrading)
	h.Eventually(h.visits).Should(Receive(), "it is to be visited")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey)).To(And(HaveField("PoolsKnown", true), HaveField("Pools", ConsistOf(facts.Pool{Name: "worker", Paused: true}))))
	h.Eventually(func() int { return s.watched(poolsPath) }).Should(Equal(1))

	for len(h.news) > 0 {
		<-h.news
	}
	s.put(poolsPath, poolWith(poolBehind))
	h.Expect(h.told().Pools).To(ConsistOf(facts.Pool{Name: "worker", Behind: true}), "without another visit")
	s.put(poolsPath, poolWith(nil))
	h.Expect(h.told()).To(And(HaveField("PoolsKnown", true), HaveField("Pools", BeEmpty())))
	h.Expect(h.visits).NotTo(Receive())

	s.put(versionsPath, clusterVersionOf("4.20.1"))
	h.Eventually(h.told).Should(HaveField("Upgrading", BeEmpty()))
	s.endWatches(poolsPath, nil)
	h.Eventually(func() bool { return h.Observe(clusterKey).PoolsKnown }, "1m").Should(BeFalse(), "nobody asks any more")
	h.Expect(s.watched(poolsPath)).To(BeZero())
}

func TestPoolsAreFollowedWhereTheyAreAwaited(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.put(poolsPath, poolWith(poolPaused))
	for round := range 2 { // what rests is begun anew
		h.AwaitPools(clusterKey, true)
		h.Eventually(h.visits).Should(Receive(), "it is to be visited, round %d", round)
		h.visit(t.Context())
		h.Expect(h.Observe(clusterKey).Pools).To(ConsistOf(HaveField("Paused", true)))
		h.Eventually(func() int { return s.watched(poolsPath) }).Should(Equal(1))
		h.AwaitPools(clusterKey, true)
		h.Consistently(h.visits, "100ms").ShouldNot(Receive(), "that was said before")
		h.AwaitPools(clusterKey, false)
		s.endWatches(poolsPath, nil)
		h.Eventually(func() bool { return h.Observe(clusterKey).PoolsKnown }, "1m").Should(BeFalse())
	}
}

// Credentials of a user's own may not have the right.
func TestPoolsThatCannotBeReadAreUnknown(t *testing.T) {
	h, s := connectedHub(t)
	s.set(func() { s.refuse[poolsPath] = true })
	h.AwaitPools(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	seen := h.Observe(clusterKey)
	h.Expect(seen.PoolsKnown).To(BeFalse())
	h.Expect(seen.UnreadSince).To(BeZero(), "all else is known")
	h.Expect(h.visits).NotTo(Receive(), "it is tried again when it is time")
}
