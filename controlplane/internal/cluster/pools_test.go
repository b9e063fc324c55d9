package cluster

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// poolWith returns an updated pool of one Node, changed by a function.
func poolWith(change func(*machineconfigurationv1.MachineConfigPool)) *machineconfigurationv1.MachineConfigPool {
	p := &machineconfigurationv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker", Generation: 3}}
	p.Status.MachineCount, p.Status.ObservedGeneration = 1, 3
	p.Status.Conditions = []machineconfigurationv1.MachineConfigPoolCondition{{
		Type:   machineconfigurationv1.MachineConfigPoolUpdated,
		Status: corev1.ConditionTrue,
	}}
	if change != nil {
		change(p)
	}
	return p
}

func poolPaused(p *machineconfigurationv1.MachineConfigPool) { p.Spec.Paused = true }

func poolBehind(p *machineconfigurationv1.MachineConfigPool) {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
}

func TestPoolOf(t *testing.T) {
	is := func(p *machineconfigurationv1.MachineConfigPool, kind machineconfigurationv1.MachineConfigPoolConditionType, message string) {
		p.Status.Conditions = append(p.Status.Conditions, machineconfigurationv1.MachineConfigPoolCondition{
			Type:   kind,
			Status: corev1.ConditionTrue, Reason: "Reason", Message: message,
		})
	}
	for situation, tc := range map[string]struct {
		change func(*machineconfigurationv1.MachineConfigPool)
		pool   workload.Pool
	}{
		"all Nodes updated": {nil, workload.Pool{}},
		"paused":            {poolPaused, workload.Pool{Paused: true}},
		"paused, without Nodes": {func(p *machineconfigurationv1.MachineConfigPool) {
			poolPaused(p)
			poolBehind(p)
			p.Status.MachineCount = 0
		}, workload.Pool{}},
		"paused by this provider": {func(p *machineconfigurationv1.MachineConfigPool) {
			poolPaused(p)
			p.Annotations = map[string]string{
				objects.PausedUntilAnnotation: "v1.33.5", objects.PausedSinceAnnotation: "2026-03-01T12:00:00Z",
			}
		}, workload.Pool{Paused: true, PausedUntil: "v1.33.5", PausedSince: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}},
		"marks that this provider did not write": {func(p *machineconfigurationv1.MachineConfigPool) {
			p.Annotations = map[string]string{objects.PausedUntilAnnotation: "v1.33.5", objects.PausedSinceAnnotation: "yesterday"}
		}, workload.Pool{}},
		"a Node is not updated": {poolBehind, workload.Pool{Behind: true}},
		"not observed yet":      {func(p *machineconfigurationv1.MachineConfigPool) { p.Generation++ }, workload.Pool{Behind: true}},
		"degraded by a Node": {func(p *machineconfigurationv1.MachineConfigPool) {
			is(p, machineconfigurationv1.MachineConfigPoolDegraded, "")
			p.Status.Conditions[1].Reason = ""
			is(p, machineconfigurationv1.MachineConfigPoolNodeDegraded, "Node w0 cannot be drained")
		}, workload.Pool{Degraded: "Node w0 cannot be drained"}},
		"degraded without message": {func(p *machineconfigurationv1.MachineConfigPool) {
			is(p, machineconfigurationv1.MachineConfigPoolDegraded, "")
			p.Status.Conditions[1].Reason = ""
		}, workload.Pool{Degraded: "no reason is reported"}},
	} {
		t.Run(situation, func(t *testing.T) {
			tc.pool.Name = "worker"
			NewWithT(t).Expect(objects.PoolOf(poolWith(tc.change))).To(Equal(tc.pool))
		})
	}
}

func TestPoolsAreWatchedDuringUpgrade(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.put(poolsPath, poolWith(poolPaused))
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey).PoolsKnown).To(BeFalse())
	h.Expect(s.requests()).NotTo(ContainElement(ContainSubstring(poolsPath)), "no upgrade runs")

	upgrading := clusterVersionOf("4.19.3")
	upgrading.Status.History = slices.Insert(upgrading.Status.History, 0, configv1.UpdateHistory{
		State:   configv1.PartialUpdate,
		Version: "4.20.1",
	})
	s.put(versionsPath, upgrading)
	h.Eventually(h.visits).Should(Receive(), "the cluster must be visited")
	h.visit(t.Context())
	h.Expect(h.Observe(clusterKey)).To(And(HaveField("PoolsKnown", true), HaveField("UnpausedPools", BeEmpty()), HaveField("Pools",
		ConsistOf(workload.Pool{Name: "worker", Paused: true}))))
	h.Eventually(func() int { return s.watched(poolsPath) }).Should(Equal(1))

	for len(h.changes) > 0 {
		<-h.changes
	}
	s.put(poolsPath, poolWith(poolBehind))
	h.Expect(h.observeChange().Pools).To(ConsistOf(workload.Pool{Name: "worker", Behind: true}), "without another visit")
	s.put(poolsPath, poolWith(nil))
	h.Expect(h.observeChange()).To(And(HaveField("PoolsKnown", true), HaveField("Pools", BeEmpty()),
		HaveField("UnpausedPools", ConsistOf("worker"))))
	h.Expect(h.visits).NotTo(Receive())

	s.put(versionsPath, clusterVersionOf("4.20.1"))
	h.Eventually(h.observeChange).Should(HaveField("Upgrading", BeEmpty()))
	s.endWatches(poolsPath, nil)
	h.Eventually(func() bool { return h.Observe(clusterKey).PoolsKnown }, "1m").Should(BeFalse(), "pools are not needed any more")
	h.Expect(s.watched(poolsPath)).To(BeZero())
}

func TestPoolsAreWatchedWhileRequired(t *testing.T) {
	t.Parallel()
	h, s := connectedHub(t)
	s.put(poolsPath, poolWith(poolPaused))
	for round := range 2 { // the watch restarts
		h.RequirePools(clusterKey, true)
		h.Eventually(h.visits).Should(Receive(), "the cluster must be visited, round %d", round)
		h.visit(t.Context())
		h.Expect(h.Observe(clusterKey).Pools).To(ConsistOf(HaveField("Paused", true)))
		h.Eventually(func() int { return s.watched(poolsPath) }).Should(Equal(1))
		h.RequirePools(clusterKey, true)
		h.Consistently(h.visits, "100ms").ShouldNot(Receive(), "nothing changed")
		h.RequirePools(clusterKey, false)
		s.endWatches(poolsPath, nil)
		h.Eventually(func() bool { return h.Observe(clusterKey).PoolsKnown }, "1m").Should(BeFalse())
	}
}

// Credentials of the user may lack the permission.
func TestUnreadablePoolsAreUnknown(t *testing.T) {
	h, s := connectedHub(t)
	s.set(func() { s.refuse[poolsPath] = true })
	h.RequirePools(clusterKey, true)
	h.Eventually(h.visits).Should(Receive())
	h.visit(t.Context())
	seen := h.Observe(clusterKey)
	h.Expect(seen.PoolsKnown).To(BeFalse())
	h.Expect(seen.UnreadSince).To(BeZero(), "all required resources are known")
	h.Expect(h.visits).NotTo(Receive(), "it is retried at the next interval")
}
