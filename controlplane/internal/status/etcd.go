package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// degradedGrace is the time that ClusterOperator etcd may be degraded before etcd counts as not healthy.
// Members restart for each revision, and with their hosts. During a planned restart of control-plane hosts
// the restart time of one host counts: a member is unavailable as long as its own host.
const degradedGrace = 5 * time.Minute

// untilDegradedCounts returns the time until a degraded etcd counts as not healthy; zero: it counts already,
// or is not degraded.
func (v *View) untilDegradedCounts() time.Duration {
	if v.Workload.Etcd.DegradedSince.IsZero() {
		return 0
	}
	grace := degradedGrace
	if len(v.health().PlannedRestarts()) > 0 {
		grace = workload.RestartTime(1)
	}
	return max(0, grace-v.Now.Sub(v.Workload.Etcd.DegradedSince))
}

// nodeGrace is how long a control-plane Node may have no Machine before the Node counts. Cluster API deletes the Node
// of a Machine just before the Machine, and the watches of the two clusters are not synchronized.
const nodeGrace = time.Minute

// untilNodeCounts returns the time until a control-plane Node without Machine counts; zero if the Node counts already,
// or no such Node exists: see condition.UnknownLeft.
func (v *View) untilNodeCounts() time.Duration {
	if !v.Installed() || !v.health().Known() || len(v.nodesWithoutMachine()) == 0 {
		return 0
	}
	return condition.UnknownLeft(conditions.Get(v.ControlPlane, controlplanev1.EtcdClusterHealthyCondition), nodeGrace, v.Now)
}

// composeEtcd sets the condition EtcdClusterHealthy of an installed cluster.
func (v *View) composeEtcd(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	if !v.Installed() || v.ClusterDeleting() {
		conditions.Delete(cp, controlplanev1.EtcdClusterHealthyCondition)
		return
	}
	conditions.Set(cp, v.etcdClusterHealthy())
}

func (v *View) etcdClusterHealthy() metav1.Condition {
	const t = controlplanev1.EtcdClusterHealthyCondition
	h := v.health()
	etcd := v.Workload.Etcd
	switch {
	case !h.Known() || !etcd.Known:
		return v.etcdUnknown()
	case !etcd.Available && h.ComingUp() > 0:
		return condition.Unknown(
			t, controlplanev1.WaitingForHealthyClusterReason, "the cluster is installed, and ClusterOperator etcd is not available yet",
		)
	case !etcd.Available && h.RestartLeft(t) > 0:
		return h.Restarting(t)
	case !etcd.Available:
		return condition.False(
			t, controlplanev1.EtcdClusterNotHealthyReason, "ClusterOperator etcd is not available: see its conditions in the cluster",
		)
	case !etcd.DegradedSince.IsZero() && v.untilDegradedCounts() == 0:
		return condition.False(t, controlplanev1.EtcdClusterNotHealthyReason, v.degraded())
	}
	nodes := v.nodesWithoutMachine()
	switch {
	case len(nodes) > 0 && v.untilNodeCounts() > 0:
		return condition.Unknown(
			t,
			controlplanev1.WaitingForNodeDeletionReason,
			fmt.Sprintf("waiting up to %s for the deletion of control-plane Nodes without Machine: %s", nodeGrace, bound.List(nodes)),
		)
	case len(nodes) > 0:
		return condition.False(t, controlplanev1.NodeWithoutMachineReason, withoutMachine(nodes))
	}
	return condition.True(t, controlplanev1.EtcdClusterHealthyReason)
}

// etcdUnknown keeps the last condition for the grace period: a connection ends and is opened again, also when
// the manager restarts.
func (v *View) etcdUnknown() metav1.Condition {
	const t = controlplanev1.EtcdClusterHealthyCondition
	h := v.health()
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case h.Known():
		return condition.Unknown(t, controlplanev1.WaitingForHealthyClusterReason, "the cluster has no ClusterOperator etcd")
	case h.GraceLeft() > 0 && before != nil:
		return *before
	case h.RestartLeft(t) > 0:
		return h.Restarting(t)
	case h.GraceLeft() > 0, !h.Initialized():
		return condition.Unknown(t, controlplanev1.WaitingForAPIServerReason, "waiting for the cluster's API server to answer")
	default:
		return h.Unknown(t)
	}
}

// degraded quotes the etcd operator, names members and Nodes that belong to no Machine, and advises the user.
func (v *View) degraded() string {
	etcd := v.Workload.Etcd
	parts := []string{
		fmt.Sprintf(
			"ClusterOperator etcd is degraded since %s: %s", etcd.DegradedSince.UTC().Format(time.RFC3339), strings.TrimRight(etcd.Degraded, ". "),
		),
	}
	if members := v.membersWithoutNode(); len(members) > 0 {
		parts = append(parts, fmt.Sprintf("etcd %s no Node and no Machine: %s. If the host does not exist any more, remove the member as "+
			"OpenShift documents it",
			english.PluralWord(len(members), "member has", "members have"), bound.List(members)))
	}
	if nodes := v.nodesWithoutMachine(); len(nodes) > 0 {
		parts = append(parts, withoutMachine(nodes))
	}
	return strings.Join(append(parts, v.etcdRepair()), ". ")
}

// etcdRepair advises to delete a Machine only if another host can replace its host. A single node is the whole
// cluster, and Pacemaker runs the etcd of two nodes with fencing.
func (v *View) etcdRepair() string {
	if v.Fenced() || len(v.Found.Machines) < 2 {
		return "See the conditions of the operator in the cluster, and repair the host"
	}
	return "The condition EtcdMemberHealthy of each control-plane Machine reports which member is down. Repair its host. If the host " +
		"cannot be repaired, delete its Machine, which wipes the disks of that host"
}

func withoutMachine(nodes []string) string {
	return fmt.Sprintf("control-plane %s no Machine and may be a member of etcd: %s. If a server came back whose Machine was deleted, "+
		"switch it off, remove its etcd "+
		"member as OpenShift documents it, then delete the Node, which wipes nothing", english.PluralWord(len(nodes), "Node has", "Nodes have"),
		bound.List(nodes))
}

// nodesWithoutMachine returns the control-plane Nodes that belong to no Machine: a repaired server that boots
// its old disk comes back as another voter. While the host of a Machine is known and its Node is not, the
// Node may belong to this Machine.
func (v *View) nodesWithoutMachine() []string {
	machines := slices.Concat(v.Found.Machines, v.Workers)
	if slices.ContainsFunc(v.Found.Machines, v.needsNode) {
		return nil
	}
	var without []string
	for _, n := range v.Workload.Nodes {
		ofMachine := func(m *clusterv1.Machine) bool {
			return m.Status.NodeRef.Name == n.Name || m.Spec.ProviderID != "" && m.Spec.ProviderID == n.ProviderID
		}
		if n.ControlPlane && !slices.ContainsFunc(machines, ofMachine) {
			without = append(without, n.Name)
		}
	}
	return without
}

// needsNode reports whether the host of a Machine may have become a Node that the Machine does not name yet.
// A Machine without host has no Node, however long it waits for a host.
func (v *View) needsNode(m *clusterv1.Machine) bool {
	return !m.Status.NodeRef.IsDefined() && m.DeletionTimestamp.IsZero() && (m.Spec.ProviderID != "" || v.AgentOf(m) != nil)
}

// membersWithoutNode returns the started members whose Node and Machine are deleted, as far as the members
// were read.
func (v *View) membersWithoutNode() []string {
	seen := v.Found.Etcd
	if seen == nil || !seen.Readable() {
		return nil
	}
	var without []string
	for _, member := range seen.Members {
		ofNode := func(n workload.Node) bool { return n.Name == member.Name }
		ofMachine := func(m *clusterv1.Machine) bool { return m.Status.NodeRef.Name == member.Name }
		if member.Name != "" && !slices.ContainsFunc(v.Workload.Nodes, ofNode) && !slices.ContainsFunc(v.Found.Machines, ofMachine) {
			without = append(without, member.Name)
		}
	}
	return without
}
