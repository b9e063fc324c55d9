package removal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Needed reports whether a decision is needed: a Machine is being deleted, or a host was released.
func Needed(f *facts.Facts) bool {
	return f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" ||
		slices.ContainsFunc(f.Machines, collections.HasDeletionTimestamp)
}

// Of returns the situation of a control plane. The error is about the record of released hosts.
func Of(f *facts.Facts) (*Situation, error) {
	situation := &Situation{Replicas: int(f.Replicas()), Fenced: f.Fenced(), Registered: f.Workload.Nodes}
	for _, m := range f.Machines {
		machine := about(m)
		machine.Node, machine.HostUID = nodeOf(f, m), hostOf(f, m)
		machine.Waits, machine.Blocker = waits(m), blocker(m)
		machine.Terminating = conditions.GetReason(
			m,
			clusterv1.MachineDeletingCondition,
		) == clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason
		situation.Machines = append(situation.Machines, machine)
	}
	for _, m := range f.Workers {
		machine := about(m)
		machine.Node = m.Status.NodeRef.Name
		situation.Others = append(situation.Others, machine)
	}
	recorded := f.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation]
	if recorded == "" {
		return situation, nil
	}
	if err := json.Unmarshal([]byte(recorded), &situation.ReleasedHosts); err != nil {
		return situation, fmt.Errorf("the annotation %s cannot be read: %w", controlplanev1.ReleasedHostsAnnotation, err)
	}
	for i, left := range situation.ReleasedHosts {
		situation.ReleasedHosts[i] = left.on(situation.Registered)
	}
	return situation, nil
}

// about returns the data of any Machine.
func about(m *clusterv1.Machine) quorum.Machine {
	machine := quorum.Machine{Name: m.Name, UID: m.UID, ProviderID: m.Spec.ProviderID, HasHook: HasHook(m)}
	if !m.DeletionTimestamp.IsZero() {
		machine.Deleted = m.DeletionTimestamp.Time
	}
	return machine
}

// nodeOf returns the name of the Node of a Machine; "" if unknown.
func nodeOf(f *facts.Facts, m *clusterv1.Machine) string {
	if m.Status.NodeRef.IsDefined() {
		return m.Status.NodeRef.Name
	}
	if at := slices.IndexFunc(
		f.Workload.Nodes,
		func(n workload.Node) bool { return n.ProviderID != "" && n.ProviderID == m.Spec.ProviderID },
	); at >= 0 {
		return f.Workload.Nodes[at].Name
	}
	if node := f.NodeOf(m); node != nil {
		return node.Name
	}
	return ""
}

// hostOf returns the UID of the host of a Machine, from its Agent; "" if unknown.
func hostOf(f *facts.Facts, m *clusterv1.Machine) string {
	if agent := f.AgentOf(m); agent != nil {
		return agent.Spec.NodeLabels[metal3.HostUIDLabel]
	}
	return ""
}

// HasHook reports whether a Machine has our hook.
func HasHook(m *clusterv1.Machine) bool {
	_, held := m.Annotations[controlplanev1.EtcdMemberHookAnnotation]
	return held
}

// waits reports whether the deletion of a Machine waits only for our hook. Foreign hooks may still need the
// services of the host.
func waits(m *clusterv1.Machine) bool {
	return conditions.GetReason(m, clusterv1.MachineDeletingCondition) == clusterv1.MachineDeletingWaitingForPreTerminateHookReason &&
		!WaitsForOthers(m)
}

// longestBlocker bounds the text from Cluster API in a message, which names Pods of the cluster.
const longestBlocker = 400

// beforeHook are the reasons of the condition Deleting of a Machine that has not reached our hook.
var beforeHook = []string{
	clusterv1.MachineDeletingWaitingForPreDrainHookReason,
	clusterv1.MachineDeletingDrainingNodeReason,
	clusterv1.MachineDeletingWaitingForVolumeDetachReason,
	clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
}

// blocker returns what Cluster API reports about a Machine that is being deleted and has not reached our
// hook.
func blocker(m *clusterv1.Machine) string {
	c := conditions.Get(m, clusterv1.MachineDeletingCondition)
	if m.DeletionTimestamp.IsZero() || waits(m) || c == nil || !slices.Contains(beforeHook, c.Reason) {
		return ""
	}
	message := strings.Join(strings.Fields(c.Message), " ")
	if len(message) > longestBlocker {
		message = strings.ToValidUTF8(message[:longestBlocker], "") + "..."
	}
	return strings.TrimSuffix(fmt.Sprintf("waiting for Cluster API (condition Deleting of the Machine: %s): %s", c.Reason, message), ": ")
}

// WaitsForOthers reports whether a Machine has foreign pre-terminate hooks.
func WaitsForOthers(m *clusterv1.Machine) bool {
	return slices.ContainsFunc(
		contract.PreTerminateHooks(m),
		func(hook string) bool { return hook != controlplanev1.EtcdMemberHookAnnotation },
	)
}
