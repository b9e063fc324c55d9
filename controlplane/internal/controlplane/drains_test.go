package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdremoval"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// drain makes Cluster API drain the Node of a Machine, and sets the status that the kubelet reports.
func (h *hub) drain(m *clusterv1.Machine, blocker string, node metav1.ConditionStatus, reason string) {
	h.t.Helper()
	h.get(m.Name, m)
	conditions.Set(m, metav1.Condition{
		Type:    clusterv1.MachineDeletingCondition,
		Status:  metav1.ConditionTrue,
		Reason:  clusterv1.MachineDeletingDrainingNodeReason,
		Message: blocker,
	})
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
	h.Expect(h.writes[before:]).To(BeEmpty(), "the rule is written once")
}

// foreignRule is a MachineDrainRule that a user gave the name of ours.
func foreignRule(change func(*clusterv1.MachineDrainRule)) *clusterv1.MachineDrainRule {
	rule := &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "c1-guard-pods"},
		Spec: clusterv1.MachineDrainRuleSpec{
			Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain},
		},
	}
	if change != nil {
		change(rule)
	}
	return rule
}

func TestForeignDrainRuleIsReportedAndNotChanged(t *testing.T) {
	for situation, change := range map[string]func(*clusterv1.MachineDrainRule){
		"without owner and labels": nil,
		"with the label of the Cluster only": func(rule *clusterv1.MachineDrainRule) {
			rule.Labels = map[string]string{clusterv1.ClusterNameLabel: "cluster1"}
		},
		"with the labels of another control plane": func(rule *clusterv1.MachineDrainRule) {
			rule.Labels = map[string]string{clusterv1.ClusterNameLabel: "cluster1", clusterv1.MachineControlPlaneNameLabel: "other"}
		},
		"of another controller": func(rule *clusterv1.MachineDrainRule) {
			rule.Labels = factsOf(nil).Labels()
			rule.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: "example.com/v1", Kind: "Policy", Name: "p", UID: "p", Controller: ptr.To(true)},
			}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, append(world(nil), foreignRule(change))...).withTime()
			before := &clusterv1.MachineDrainRule{}
			h.get("c1-guard-pods", before)
			h.install()
			h.endDeferral()
			h.reconcile()
			rule := &clusterv1.MachineDrainRule{}
			h.get("c1-guard-pods", rule)
			h.Expect(rule).To(Equal(before))
			h.Expect(h.condition(controlplanev1.HostsReleasingCondition)).To(And(HaveField("Status", metav1.ConditionFalse),
				HaveField("Reason", controlplanev1.DrainRuleNotOursReason),
				HaveField("Message", And(HavePrefix("MachineDrainRule c1-guard-pods is foreign"), ContainSubstring("wipes no host")))))

			h.Expect(h.Delete(t.Context(), rule)).To(Succeed())
			h.reconcile()
			h.get("c1-guard-pods", rule)
			h.Expect(metav1.IsControlledBy(rule, h.controlPlane())).To(BeTrue())
			h.Expect(h.condition(controlplanev1.HostsReleasingCondition)).To(
				And(HaveField("Reason", controlplanev1.NotReleasingReason), HaveField("Message", BeEmpty())),
			)
		})
	}
}

// A drain that waits for a guard Pod may wait for ever: the cause is reported together with the wait.
func TestMachineThatWaitsForItsDrainReportsForeignDrainRule(t *testing.T) {
	h := newInstalledHub(t)
	rule := &clusterv1.MachineDrainRule{}
	h.get("c1-guard-pods", rule)
	h.Expect(h.Delete(t.Context(), rule)).To(Succeed())
	h.Expect(h.Create(t.Context(), foreignRule(nil))).To(Succeed())
	m := &clusterv1.Machine{}
	h.get(h.deleteMachine(0), m)
	h.drain(m, "Pod openshift-etcd/etcd-guard-n0: cannot evict pod", metav1.ConditionFalse, "KubeletNotReady")
	h.Expect(h.condition(controlplanev1.HostsReleasingCondition)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Reason", controlplanev1.WaitingForDrainReason),
		HaveField("Message", And(ContainSubstring("etcd-guard-n0"), ContainSubstring("MachineDrainRule c1-guard-pods is foreign")))))
}

// The cache may not have a rule that the user has just created: the first write would overwrite it.
func TestForeignDrainRuleThatTheCacheLacksIsNotOverwritten(t *testing.T) {
	h := newInstalledHub(t)
	rule := &clusterv1.MachineDrainRule{}
	h.get("c1-guard-pods", rule)
	h.Expect(h.Delete(t.Context(), rule)).To(Succeed())
	h.r.writer.Recent = reconcile.NewRecentWrites(h.clock)
	h.Expect(h.Create(t.Context(), foreignRule(nil))).To(Succeed())
	h.cached.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, late := obj.(*clusterv1.MachineDrainRule); late {
				return apierrors.NewNotFound(clusterv1.GroupVersion.WithResource("machinedrainrules").GroupResource(), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	h.reconcile()
	h.get("c1-guard-pods", rule)
	h.Expect(rule.Spec.Drain.Behavior).To(Equal(clusterv1.MachineDrainRuleDrainBehaviorDrain))
}

// A restore drops owner references: labels show whose rule it is.
func TestDrainRuleWithoutOwnerIsOursByItsLabels(t *testing.T) {
	h := newInstalledHub(t)
	rule := &clusterv1.MachineDrainRule{}
	h.get("c1-guard-pods", rule)
	rule.OwnerReferences = nil
	h.Expect(h.Update(t.Context(), rule)).To(Succeed())
	h.r.writer.Recent = reconcile.NewRecentWrites(h.clock)
	h.reconcile()
	h.get("c1-guard-pods", rule)
	h.Expect(metav1.IsControlledBy(rule, h.controlPlane())).To(BeTrue())
}

func TestDeletionOfForeignDrainRuleReconcilesTheControlPlane(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.Expect(h.r.ofDrainRule(t.Context(), foreignRule(nil))).To(ConsistOf(h.request()))
	other := foreignRule(nil)
	other.Name = "c1"
	h.Expect(h.r.ofDrainRule(t.Context(), other)).To(BeEmpty())
}

func TestUnreachableNodeIsNotDrained(t *testing.T) {
	h := newInstalledHub(t).withTime()
	m := &clusterv1.Machine{}
	h.get(h.deleteMachine(0), m)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.drain(m, "Pod apps/db-0: cannot evict pod", metav1.ConditionUnknown, clusterv1.MachineNodeReadyUnknownReason)
	h.Expect(m.Annotations).NotTo(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), "its kubelet may hang for a moment")
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", facts.UnreachableTime)))
	now = now.Add(facts.UnreachableTime)
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(
		And(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), HaveKey(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)),
	)
	h.Expect(m.Annotations).To(HaveKey(controlplanev1.EtcdMemberHookAnnotation), "the Machine keeps the hook")

	h.r.hooks.Silent = reconcile.NewStartTimes[string](h.clock)
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), "also after a restart")

	h.endDeferral()
	h.drain(m, "Pod apps/db-0: cannot evict pod", metav1.ConditionTrue, "KubeletReady")
	h.Expect(m.Annotations).NotTo(
		Or(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), HaveKey(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)),
		"the kubelet reports again",
	)
	h.Expect(
		conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition),
	).To(And(HaveField("Reason", controlplanev1.WaitingForDrainReason),
		HaveField("Message", And(ContainSubstring(m.Name), ContainSubstring("Pod apps/db-0: cannot evict pod")))))
}

// Without a drain and a hook Cluster API would proceed to the host.
func TestMachineIsExcludedFromItsDrainOnlyWithHook(t *testing.T) {
	h := newInstalledHub(t)
	m := h.deleteWithoutHook(clusterv1.MachineDeletingDrainingNodeReason)
	conditions.Set(m, metav1.Condition{
		Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown, Reason: clusterv1.MachineNodeReadyUnknownReason,
	})
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.r.hooks.Silent.Since(etcdremoval.SilenceKey(m))
	now := time.Now().Add(facts.UnreachableTime)
	h.clock.now = func() time.Time { return now }
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(
		And(HaveKey(controlplanev1.EtcdMemberHookAnnotation), Not(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation))), "the hook is added first",
	)
	h.reconcile()
	h.get(m.Name, m)
	h.Expect(m.Annotations).To(And(HaveKey(controlplanev1.EtcdMemberHookAnnotation), HaveKey(clusterv1.ExcludeNodeDrainingAnnotation)))
}

func TestMachineWithHookReportsTheDrainOfAnotherMachine(t *testing.T) {
	h := newInstalledHub(t)
	h.etcds.Members[1].Problem = "does not answer"
	h.deleteMachine(0)
	dead := &clusterv1.Machine{}
	h.get(h.deleteMachine(1), dead)
	h.drain(dead, "Pod apps/db-0: cannot evict pod", metav1.ConditionFalse, "KubeletNotReady")
	h.Expect(
		conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition),
	).To(And(HaveField("Reason", controlplanev1.EtcdQuorumAtRiskReason),
		HaveField(
			"Message",
			And(
				ContainSubstring("Machine "+dead.Name+" of Node n1 is being deleted and is handled first"),
				ContainSubstring("Pod apps/db-0: cannot evict pod"),
			),
		)))
}
