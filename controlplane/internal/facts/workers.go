package facts

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
)

// NodeAway reports whether a Machine is known to have no Ready Node.
func NodeAway(m *clusterv1.Machine) bool {
	c := conditions.Get(m, clusterv1.MachineNodeReadyCondition)
	return c != nil && c.Status != metav1.ConditionTrue
}

// UnreachableTime is how long this process must observe that a kubelet does not report. Only then its Node is
// not drained, and is deleted after the release of its host. A hanging kubelet or a network restart takes
// less time: Pods may still run on the Node. Kubernetes evicts the Pods of an unreachable Node after five
// minutes.
const UnreachableTime = 10 * time.Minute

// NodeUnreachable reports whether the kubelet of a Machine's Node is known not to report: its host is off, or
// disconnected. Cluster API sets this reason only if it read the Node and the Ready condition of the Node is
// Unknown (setNodeHealthyAndReadyConditions of its machine_controller_status.go, v1.12). It sets other
// reasons for a cluster that it does not reach.
func NodeUnreachable(m *clusterv1.Machine) bool {
	c := conditions.Get(m, clusterv1.MachineNodeReadyCondition)
	return c != nil && c.Status == metav1.ConditionUnknown && m.Status.NodeRef.IsDefined() &&
		c.Reason == clusterv1.MachineNodeReadyUnknownReason
}

// ExpectsHosts reports whether hosts are to join the cluster.
func (f *Facts) ExpectsHosts() bool {
	return slices.ContainsFunc(f.Machines, WaitsForNode) || slices.ContainsFunc(f.Workers, WaitsForNode)
}

// ExpectsKubelets reports whether kubelets of the cluster may request certificates with which they join, or
// return.
func (f *Facts) ExpectsKubelets() bool {
	return slices.ContainsFunc(f.Machines, NodeAway) || slices.ContainsFunc(f.Workers, NodeAway)
}
