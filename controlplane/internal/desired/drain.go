package desired

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// drainRuleSuffix makes the name of a control plane's MachineDrainRule.
const drainRuleSuffix = "-guard-pods"

// guardedNamespaces have a guard Pod on each control-plane Node, with a PodDisruptionBudget of all Nodes but one
// (library-go, staticpod/controller/guard).
var guardedNamespaces = []string{"openshift-etcd", "openshift-kube-apiserver", "openshift-kube-controller-manager", "openshift-kube-scheduler"}

// DrainRule excludes the guard Pods from the drains of control-plane Nodes; nil: the cluster needs no rule. A drained
// Node that waits for our hook has no guard Pod. So the guard Pod of a second Node whose member is down could not be
// evicted: its Machine would never reach the hook, and the first Machine waits for the second. A drain does not stop
// static Pods: what guard Pods protect, our hook protects.
func DrainRule(f *facts.Facts) *clusterv1.MachineDrainRule {
	if f.Cluster == nil || f.ClusterDeleting() || f.Fenced() || !f.Installed() {
		return nil
	}
	return &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.ControlPlane.Namespace, Name: f.ControlPlane.Name + drainRuleSuffix, Labels: f.Labels(),
			OwnerReferences: []metav1.OwnerReference{*controllerRef(f)},
		},
		Spec: clusterv1.MachineDrainRuleSpec{
			Drain:    clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip},
			Machines: []clusterv1.MachineDrainRuleMachineSelector{{Selector: &metav1.LabelSelector{MatchLabels: f.Labels()}}},
			Pods: []clusterv1.MachineDrainRulePodSelector{{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guard"}},
				NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: guardedNamespaces},
				}},
			}},
		},
	}
}

// Values of the annotations that exclude a Machine from drains. Cluster API reads the keys alone; an annotation with
// another value is the user's.
const (
	drainExcludedFencing     = "two-nodes-with-fencing"
	drainExcludedUnreachable = "node-unreachable"
)

// drainExclusions make Cluster API neither drain the Node of a Machine nor wait for its volumes.
var drainExclusions = []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation}

// UnreachableTime is how long a kubelet must not report until its Node is not drained. A kubelet that hangs, or a
// network that is restarted, takes less: then drain, PodDisruptionBudgets and the wait for volumes still count.
// Kubernetes itself evicts the Pods of an unreachable Node after five minutes.
const UnreachableTime = 10 * time.Minute

// drainExclusion is why the Node of a Machine must not be drained; empty: it may be. Of two nodes with fencing none is
// ever released, so a drained one would stay cordoned: each is half the cluster. An unreachable Node stops no Pod, and
// Pods that tolerate that may block the drain for ever: those that replace them may be Pods of another Machine that is
// drained and waits. An exclusion that exists ends only when the kubelet reports, whatever this process has observed.
func drainExclusion(f *facts.Facts, m *clusterv1.Machine, silence time.Duration) string {
	switch {
	case f.Fenced():
		return drainExcludedFencing
	case m == nil || m.DeletionTimestamp.IsZero() || !facts.NodeUnreachable(m):
		return ""
	case silence >= UnreachableTime || m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] == drainExcludedUnreachable:
		return drainExcludedUnreachable
	}
	return ""
}

// SetDrainExclusion sets the annotations by which Cluster API does not drain the Node of a Machine, and removes ours
// when it may be drained again. A value that the user set, as observed, stays. silence is for how long the kubelet of
// the Node has not reported.
func SetDrainExclusion(f *facts.Facts, m, observed *clusterv1.Machine, silence time.Duration) {
	why := drainExclusion(f, observed, silence)
	for _, key := range drainExclusions {
		value, set := m.Annotations[key]
		if !set && observed != nil {
			value, set = observed.Annotations[key]
		}
		ours := value == drainExcludedFencing || value == drainExcludedUnreachable
		switch {
		case why != "" && (!set || ours):
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, why)
		case why == "" && ours:
			delete(m.Annotations, key)
		}
	}
}
