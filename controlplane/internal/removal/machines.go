package removal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Of is what can be asked about a control plane. The error is about what is recorded of released hosts.
func Of(f *facts.Facts) (*Asked, error) {
	asked := &Asked{Replicas: int(f.Replicas())}
	for _, m := range f.Machines {
		machine := Machine{Name: m.Name, Node: nodeOf(f, m), ProviderID: m.Spec.ProviderID, Held: Holds(m), Waits: waits(m)}
		if !m.DeletionTimestamp.IsZero() {
			machine.Deleted = m.DeletionTimestamp.Time
		}
		asked.Machines = append(asked.Machines, machine)
	}
	recorded := f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation]
	if recorded == "" {
		return asked, nil
	}
	if err := json.Unmarshal([]byte(recorded), &asked.Leftovers); err != nil {
		return asked, fmt.Errorf("the annotation %s cannot be read: %w", controlplanev1.ReleasedHostsAnnotation, err)
	}
	return asked, nil
}

// nodeOf names the Node of a Machine; empty: none is known.
func nodeOf(f *facts.Facts, m *clusterv1.Machine) string {
	if m.Status.NodeRef.IsDefined() {
		return m.Status.NodeRef.Name
	}
	if at := slices.IndexFunc(f.Workload.Nodes, func(n facts.Node) bool { return n.ProviderID != "" && n.ProviderID == m.Spec.ProviderID }); at >= 0 {
		return f.Workload.Nodes[at].Name
	}
	if node := f.NodeOf(m); node != nil {
		return node.Name
	}
	return ""
}

// Holds tells whether a Machine carries our hook.
func Holds(m *clusterv1.Machine) bool {
	_, held := m.Annotations[controlplanev1.EtcdMemberHookAnnotation]
	return held
}

// waits tells whether all that comes before our hook was done: others may still need what the host runs.
func waits(m *clusterv1.Machine) bool {
	for hook := range m.Annotations {
		if hook != controlplanev1.EtcdMemberHookAnnotation && strings.HasPrefix(hook, clusterv1.PreTerminateDeleteHookAnnotationPrefix) {
			return false
		}
	}
	deleting := conditions.Get(m, clusterv1.MachineDeletingCondition)
	return deleting != nil && deleting.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
}

// Record is how leftovers are recorded; empty: there are none.
func Record(leftovers []Leftover) (string, error) {
	if len(leftovers) == 0 {
		return "", nil
	}
	recorded, err := json.Marshal(leftovers)
	return string(recorded), err
}
