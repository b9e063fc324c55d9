package desired

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// DrainRuleSuffix is the suffix of the name of a control plane's MachineDrainRule.
const DrainRuleSuffix = "-guard-pods"

// guardedNamespaces have a guard Pod on each control-plane Node, with a PodDisruptionBudget of all Nodes but
// one (library-go, staticpod/controller/guard).
var guardedNamespaces = []string{
	"openshift-etcd",
	"openshift-kube-apiserver",
	"openshift-kube-controller-manager",
	"openshift-kube-scheduler",
}

// DrainRule returns a rule that excludes the guard Pods from the drains of control-plane Nodes; nil if the
// cluster needs no rule. A drained Node that waits for our hook has no guard Pod. The guard Pod of a second
// Node whose member is down could then not be evicted. The second Machine would never reach the hook, and the
// first Machine waits for the second. A drain does not stop static Pods, which the hook protects instead of
// the guard Pods.
func DrainRule(f *facts.Facts) *clusterv1.MachineDrainRule {
	if f.Cluster == nil || f.ClusterDeleting() || f.Fenced() || !f.Installed() {
		return nil
	}
	return &clusterv1.MachineDrainRule{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.ControlPlane.Namespace, Name: f.ControlPlane.Name + DrainRuleSuffix, Labels: f.Labels(),
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

// Values of the annotations that exclude a Machine from drains. Cluster API reads only the keys. An
// annotation with another value belongs to the user.
const (
	drainExcludedFencing     = "two-nodes-with-fencing"
	drainExcludedUnreachable = "node-unreachable"
)

// drainExclusions are the annotations by which Cluster API neither drains the Node of a Machine nor waits for
// its volumes.
var drainExclusions = []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation}

// drainExclusion returns why the Node of a Machine must not be drained, or "". In a two-node cluster with
// fencing no Node is ever released. A drained Node would stay cordoned, and each Node is half the cluster. An
// unreachable Node stops no Pod, and Pods with a toleration for that may block the drain forever. Their
// replacements may be Pods of another Machine that is drained and waits. An existing exclusion ends only when
// the kubelet reports, even after a restart of this process.
func drainExclusion(f *facts.Facts, m *clusterv1.Machine, silence time.Duration) string {
	switch {
	case f.Fenced():
		return drainExcludedFencing
	case m == nil || m.DeletionTimestamp.IsZero() || !facts.NodeUnreachable(m):
		return ""
	case silence >= facts.UnreachableTime || m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] == drainExcludedUnreachable:
		return drainExcludedUnreachable
	}
	return ""
}

// SetDrainExclusion sets the annotations that exclude the Node of a Machine from drains, and removes its own
// when the Node may be drained again. A value that the user set in observed stays. silence is how long the
// kubelet of the Node has not reported.
func SetDrainExclusion(f *facts.Facts, m, observed *clusterv1.Machine, silence time.Duration) {
	exclusion := drainExclusion(f, observed, silence)
	for _, key := range drainExclusions {
		value, set := m.Annotations[key]
		if !set && observed != nil {
			value, set = observed.Annotations[key]
		}
		ours := value == drainExcludedFencing || value == drainExcludedUnreachable
		switch {
		case exclusion != "" && (!set || ours):
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, exclusion)
		case exclusion == "" && ours:
			delete(m.Annotations, key)
		}
	}
}
