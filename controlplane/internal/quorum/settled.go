package quorum

import (
	"cmp"
	"slices"

	configv1 "github.com/openshift/api/config/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

const singleReplica = configv1.SingleReplicaTopologyMode

// rollers are the operators that restart etcd, or the API server, Node by Node, after each change of the
// members.
var rollers = []string{"etcd", "kube-apiserver"}

// settled blocks while operators restart members. A member that is healthy now may be down a moment later. A
// member that is down keeps its operators degraded: before its removal only the other members must be stable.
func (v *View) settled(own workload.EtcdMember) *decision.Blocker {
	serves := !own.Learner && own.Healthy()
	for _, name := range rollers {
		at := slices.IndexFunc(v.Operators, func(o workload.ClusterOperator) bool { return o.Name == name })
		var blocker decision.Blocker
		switch {
		case at < 0:
			blocker = decision.Wait(
				controlplanev1.EtcdUnknownReason,
				"the cluster has no ClusterOperator %s: it is unknown whether members are being restarted",
				name,
			)
		case !v.Operators[at].Available:
			blocker = decision.Wait(controlplanev1.WaitingForEtcdReason, "ClusterOperator %s is not available: waiting until it is", name)
		case !serves:
			continue
		case v.Operators[at].Degraded:
			blocker = decision.Wait(
				controlplanev1.WaitingForEtcdReason,
				"ClusterOperator %s is degraded: see its conditions in the cluster; waiting until it is not",
				name,
			)
		case v.Operators[at].Progressing:
			blocker = decision.Wait(controlplanev1.WaitingForEtcdReason, "ClusterOperator %s is progressing: waiting until it has settled", name)
		default:
			continue
		}
		return &blocker
	}
	return v.rolledOut(own)
}

// rolledOut blocks while a revision of etcd's static Pods is rolled out.
func (v *View) rolledOut(own workload.EtcdMember) *decision.Blocker {
	if len(v.Revisions) == 0 {
		blocker := decision.Wait(
			controlplanev1.EtcdUnknownReason,
			"the etcd operator does not report which revision its members run: it is unknown whether they are being restarted",
		)
		return &blocker
	}
	for _, r := range v.Revisions {
		if v.restarts(r, own) {
			blocker := decision.Wait(
				controlplanev1.WaitingForEtcdReason,
				"the etcd operator is rolling out revision %d, which Node %s does not run yet: waiting until it does",
				v.LatestRevision,
				r.Node,
			)
			return &blocker
		}
	}
	return nil
}

// configured blocks while the machine config operator changes Nodes, which it restarts one by one.
func (v *View) configured(own workload.EtcdMember) *decision.Blocker {
	if own.Learner || !own.Healthy() {
		return nil
	}
	at := slices.IndexFunc(v.Nodes, func(n workload.ControlPlaneNode) bool { return n.Configuring && n.Name != own.Name })
	if at < 0 {
		return nil
	}
	blocker := decision.Wait(
		controlplanev1.WaitingForEtcdReason,
		"Node %s gets another machine configuration and restarts: waiting until the update ends. See the MachineConfigPools of the cluster",
		v.Nodes[at].Name,
	)
	return &blocker
}

// restarts reports whether the member of a Node is being restarted, or will be, and that blocks the removal
// of another. A member that does not answer here may still serve, and two must not be down at the same time.
// Operators continue Node by Node. The Nodes after one that is down are not restarted before it is removed.
func (v *View) restarts(r workload.Revision, own workload.EtcdMember) bool {
	now, soon := r.Target != 0, r.Current != v.LatestRevision
	node := cmp.Or(own.Name, v.NodeAt(&own))
	stuck := slices.ContainsFunc(v.Revisions, func(r workload.Revision) bool { return r.Node == node && r.Target != 0 })
	switch {
	case !own.Learner && own.Healthy():
		return now || soon
	case r.Node == node || !v.serves(r.Node):
		return false
	}
	return now || soon && !own.Learner && !stuck
}

// serves reports whether the member of a Node is healthy.
func (v *View) serves(node string) bool {
	return slices.ContainsFunc(v.Members, func(m workload.EtcdMember) bool { return m.Name == node && m.Healthy() })
}
