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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Concerned tells whether there is anything to be decided: a Machine is being deleted, or a host was released.
func Concerned(f *facts.Facts) bool {
	deleted := func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }
	return f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" || slices.ContainsFunc(f.Machines, deleted)
}

// Of is what can be asked about a control plane. The error is about what is recorded of released hosts.
func Of(f *facts.Facts) (*Asked, error) {
	asked := &Asked{Replicas: int(f.Replicas())}
	for _, m := range f.Machines {
		machine := about(m)
		machine.Node, machine.HostUID = nodeOf(f, m), hostOf(f, m)
		machine.Held, machine.Waits = Holds(m), waits(m)
		asked.Machines = append(asked.Machines, machine)
	}
	for _, m := range f.Workers {
		asked.Others = append(asked.Others, about(m))
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

// about is what any Machine says of itself.
func about(m *clusterv1.Machine) Machine {
	machine := Machine{Name: m.Name, ProviderID: m.Spec.ProviderID}
	if !m.DeletionTimestamp.IsZero() {
		machine.Deleted = m.DeletionTimestamp.Time
	}
	return machine
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

// hostOf is the UID of the host of a Machine, as its Agent was told; empty: nobody knows it.
func hostOf(f *facts.Facts, m *clusterv1.Machine) string {
	for i := range f.Agents {
		if facts.RunsOn(&f.Agents[i], m) {
			return f.Agents[i].Spec.NodeLabels[metal3.HostUIDLabel]
		}
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
