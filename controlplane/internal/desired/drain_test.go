package desired

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

func TestDrainExclusion(t *testing.T) {
	fenced := func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Fencing = &controlplanev1.FencingSpec{}
	}
	for situation, tc := range map[string]struct {
		change   func(*controlplanev1.OpenshiftAssistedControlPlane)
		alive    bool
		node     metav1.ConditionStatus
		reason   string
		silence  time.Duration
		before   string
		expected string
	}{
		"a Node that is Ready: drained":                              {node: metav1.ConditionTrue, reason: "KubeletReady"},
		"a Node whose kubelet reports that it is not Ready: drained": {node: metav1.ConditionFalse, reason: "KubeletNotReady"},
		"a Node that is unreachable: not drained": {
			node:     metav1.ConditionUnknown,
			reason:   clusterv1.MachineNodeReadyUnknownReason,
			silence:  facts.UnreachableTime,
			expected: drainExcludedUnreachable,
		},
		"a Node that is unreachable for a moment: drained": {
			node: metav1.ConditionUnknown, reason: clusterv1.MachineNodeReadyUnknownReason, silence: facts.UnreachableTime - 1,
		},
		"an existing exclusion lasts while the Node is unreachable": {
			node:     metav1.ConditionUnknown,
			reason:   clusterv1.MachineNodeReadyUnknownReason,
			before:   drainExcludedUnreachable,
			expected: drainExcludedUnreachable,
		},
		"a Node that Cluster API cannot read: drained": {
			silence: facts.UnreachableTime, node: metav1.ConditionUnknown, reason: clusterv1.MachineNodeConnectionDownReason,
		},
		"a Machine that is not being deleted: nothing to exclude": {
			alive: true, silence: facts.UnreachableTime, node: metav1.ConditionUnknown, reason: clusterv1.MachineNodeReadyUnknownReason,
		},
		"a Node that reports again: drained": {
			node: metav1.ConditionTrue, reason: "KubeletReady", before: drainExcludedUnreachable,
		},
		"excluded by the user: unchanged": {
			node: metav1.ConditionTrue, reason: "KubeletReady", before: "by hand", expected: "by hand",
		},
		"excluded by the user, and unreachable: unchanged": {
			silence:  facts.UnreachableTime,
			node:     metav1.ConditionUnknown,
			reason:   clusterv1.MachineNodeReadyUnknownReason,
			before:   "by hand",
			expected: "by hand",
		},
		"one of two nodes with fencing: never drained": {
			change: fenced, node: metav1.ConditionTrue, reason: "KubeletReady", expected: drainExcludedFencing,
		},
		"one of two nodes with fencing, not deleted: excluded too": {
			change: fenced, alive: true, node: metav1.ConditionTrue, reason: "KubeletReady", expected: drainExcludedFencing,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}
			m.Status.NodeRef.Name = "n0"
			if !tc.alive {
				m.DeletionTimestamp = ptr.To(metav1.Now())
			}
			if tc.before != "" {
				m.Annotations = map[string]string{
					clusterv1.ExcludeNodeDrainingAnnotation:            tc.before,
					clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation: tc.before,
				}
			}
			conditions.Set(m, metav1.Condition{Type: clusterv1.MachineNodeReadyCondition, Status: tc.node, Reason: tc.reason})
			SetDrainExclusion(factsOf(tc.change), m, m, tc.silence)
			for _, key := range []string{
				"machine.cluster.x-k8s.io/exclude-node-draining", "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach",
			} {
				g.Expect(m.Annotations[key]).To(Equal(tc.expected), key)
			}
		})
	}
}

func TestUserExclusionOfAFencedNodeStays(t *testing.T) {
	g := NewWithT(t)
	f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Fencing = &controlplanev1.FencingSpec{}
	})
	observed := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m0", Annotations: map[string]string{clusterv1.ExcludeNodeDrainingAnnotation: "by hand"}},
	}
	synced := SyncedMachine(f, observed, "")
	g.Expect(synced.Annotations).NotTo(HaveKey(clusterv1.ExcludeNodeDrainingAnnotation), "fields that are not applied stay")
	g.Expect(synced.Annotations).To(HaveKeyWithValue(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, drainExcludedFencing))
	observed.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] = drainExcludedFencing
	g.Expect(SyncedMachine(f, observed, "").Annotations).
		To(HaveKeyWithValue(clusterv1.ExcludeNodeDrainingAnnotation, drainExcludedFencing), "the exclusion of this provider is applied again")
}

func TestDrainRule(t *testing.T) {
	g := NewWithT(t)
	f := factsOf(nil)
	g.Expect(DrainRule(f)).To(BeNil(), "the cluster is not installed yet")
	f.Phase = controlplanev1.InstallationInstalled
	rule := DrainRule(f)
	g.Expect(metav1.IsControlledBy(rule, f.ControlPlane)).To(BeTrue())
	g.Expect(rule.Spec.Drain.Behavior).To(Equal(clusterv1.MachineDrainRuleDrainBehaviorSkip))
	machines, err := metav1.LabelSelectorAsSelector(rule.Spec.Machines[0].Selector)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(machines.Matches(labels.Set(machineLabels(f, false)))).To(BeTrue())
	g.Expect(machines.Matches(labels.Set{clusterv1.ClusterNameLabel: "cluster1"})).To(BeFalse(), "a worker")
	namespaces, err := metav1.LabelSelectorAsSelector(rule.Spec.Pods[0].NamespaceSelector)
	g.Expect(err).NotTo(HaveOccurred())
	for namespace, guarded := range map[string]bool{"openshift-etcd": true, "openshift-kube-apiserver": true, "apps": false} {
		g.Expect(namespaces.Matches(labels.Set{"kubernetes.io/metadata.name": namespace})).To(Equal(guarded), namespace)
	}

	f.ControlPlane.Spec.Fencing = &controlplanev1.FencingSpec{}
	g.Expect(DrainRule(f)).To(BeNil(), "two nodes with fencing are not drained")
	f.ControlPlane.Spec.Fencing, f.Cluster.DeletionTimestamp = nil, ptr.To(metav1.Now())
	g.Expect(DrainRule(f)).To(BeNil(), "the Cluster is being deleted")
}
