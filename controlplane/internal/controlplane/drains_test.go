package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// drain makes a Machine one whose Node Cluster API is draining, and whose kubelet reports a status.
func (h *hub) drain(m *clusterv1.Machine, blocker string, node metav1.ConditionStatus, reason string) {
	h.t.Helper()
	h.get(m.Name, m)
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingDrainingNodeReason, Message: blocker})
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: node, Reason: reason})
	h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
	h.reconcile()
	h.get(m.Name, m)
}

func TestGuardPodsAreExcludedFromDrainsOfAnInstalledCluster(t *testing.T) {
	h := newInstalledHub(t)
	rule := &clusterv1.MachineDrainRule{}
	h.get("c1-guard-pods", rule)
	h.Expect(rule.Spec.Drain.Behavior).To(Equal(clusterv1.MachineDrainRuleDrainBehaviorSkip))
	before := len(h.writes)
	h.reconcile()
	h.Expect(h.writes[before:]).To(BeEmpty(), "it is written once")
}

func TestAnUnreachableNodeIsNotDrained(t *testing.T) {
	h := newInstalledHub(t).withTime()
	m := &clusterv1.Machine{}
	h.get(h.deleteMachine(0), m)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.drain(m, "Pod apps/db-0: cannot evict pod", metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason)
	h.Expect(m.Annotations).NotTo(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), "its kubelet may hang for a moment")
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", desired.UnreachableTime)))
	now = now.Add(desired.UnreachableTime)
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(And(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), HaveKey(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)))
	h.Expect(m.Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation), "it is held all the same")

	h.r.silent = reconcile.NewStartTimes(h.clock.Now)
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), "also after a restart")

	h.elapse()
	h.drain(m, "Pod apps/db-0: cannot evict pod", metav1.ConditionTrue, "KubeletReady")
	h.Expect(m.Annotations).NotTo(Or(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), HaveKey(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)), "it reports again")
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(And(HaveField("Reason", controlplanev1.WaitingForDrainReason),
		HaveField("Message", And(ContainSubstring(m.Name), ContainSubstring("Pod apps/db-0: cannot evict pod")))))
}

// Without a drain and a hook Cluster API would proceed to the host.
func TestAMachineIsExcludedFromItsDrainOnlyOnceItIsHeld(t *testing.T) {
	h := newInstalledHub(t)
	m := h.deleteUnheld(clusterv1.MachineDeletingDrainingNodeReason)
	conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: clusterv1.MachineNodeReadyUnknownReason})
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.r.silent.Since(silenceKey(m))
	now := time.Now().Add(desired.UnreachableTime)
	h.clock.now = func() time.Time { return now }
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(And(HaveKey(controlplanev1.EtcdMemberHookAnnotation), Not(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation))), "first it is held")
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(And(HaveKey(controlplanev1.EtcdMemberHookAnnotation), HaveKey(clusterv1.ExcludeNodeDrainingAnnotation)))
}

func TestAHeldMachineReportsTheDrainThatItWaitsFor(t *testing.T) {
	h := newInstalledHub(t)
	h.etcds.Members[1].Problem = "does not answer"
	h.deleteMachine(0)
	dead := &clusterv1.Machine{}
	h.get(h.deleteMachine(1), dead)
	h.drain(dead, "Pod apps/db-0: cannot evict pod", metav1.ConditionFalse, "KubeletNotReady")
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(And(HaveField("Reason", controlplanev1.EtcdQuorumAtRiskReason),
		HaveField("Message", And(ContainSubstring("Machine "+dead.Name+" of Node n1 is being deleted and comes first"), ContainSubstring("Pod apps/db-0: cannot evict pod")))))
}
