package removal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// ReleasedHost is the record of a host that leaves etcd. It is written before the removal, because no object
// identifies the host afterwards.
type ReleasedHost struct {
	// Machine and MachineUID are the name and the UID of its Machine. The name may be used again by a
	// replacement, and clusterctl move changes the UID. ProviderID and HostUID identify the host, as in
	// [quorum.Machine]. A host that never had a Node has only these four. Records of earlier versions lack them.
	Machine    string    `json:"machine,omitempty"`
	MachineUID types.UID `json:"machineUID,omitempty"`
	ProviderID string    `json:"providerID,omitempty"`
	HostUID    string    `json:"hostUID,omitempty"`
	// Node and UID identify its Node. Addresses are those of its member and its Node. Members are the IDs of
	// its members in the format of etcdctl.
	Node      string    `json:"node,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	Addresses []string  `json:"addresses,omitempty"`
	Members   []string  `json:"members,omitempty"`
	// Released is when our hook was removed, after the member was removed from etcd. It is nil if the hook is
	// still set, or was removed by hand.
	Released *metav1.Time `json:"released,omitempty"`
}

// Origin returns the origin of the host for messages.
func (l ReleasedHost) Origin() string {
	if l.Node == "" {
		return "Machine " + l.Machine
	}
	return "Node " + l.Node
}

// on returns the record with the Node that the host has registered since.
func (l ReleasedHost) on(nodes []workload.Node) ReleasedHost {
	host := quorum.Machine{ProviderID: l.ProviderID, HostUID: l.HostUID}
	if at := slices.IndexFunc(nodes, host.RunsAs); l.Node == "" && at >= 0 {
		l.Node, l.UID = nodes[at].Name, nodes[at].UID
	}
	return l
}

// same reports whether two records describe one host: one Node, or one Machine without a Node.
func (l ReleasedHost) same(other ReleasedHost) bool {
	if l.Node != "" && other.Node != "" {
		return l.Node == other.Node && l.UID == other.UID
	}
	return l.Machine != "" && l.Machine == other.Machine && l.ProviderID == other.ProviderID && l.HostUID == other.HostUID
}

// registered returns the Node of a recorded host; nil if it is deleted, or another Node has its name.
func (a *Situation) registered(left ReleasedHost) *workload.Node {
	at := slices.IndexFunc(a.Registered, func(n workload.Node) bool { return n.Name == left.Node && n.UID == left.UID })
	if at < 0 {
		return nil
	}
	return &a.Registered[at]
}

// isOf reports whether a record describes the host of a Machine. They have the same Node, by name or by
// identity, or the same Machine name without a contradiction. The name counts only while the Machine is being
// deleted. A Machine that is not being deleted may be the next one of that name, even on the same host. If no
// identity of the host decides, the UIDs of the Machines must not differ. A replacement that has the name and
// no host yet is another Machine.
func (a *Situation) isOf(left ReleasedHost, m quorum.Machine) bool {
	node := a.registered(left)
	switch {
	case m.Node != "" && m.Node == left.Node, node != nil && m.RunsAs(*node):
		return true
	case m.Deleted.IsZero() || left.Machine != m.Name:
		return false
	case left.ProviderID != "" && m.ProviderID != "":
		return left.ProviderID == m.ProviderID
	case left.HostUID != "" && m.HostUID != "":
		return left.HostUID == m.HostUID
	}
	return left.MachineUID == "" || m.UID == "" || left.MachineUID == m.UID
}

// recordOf returns the record of the host of a Machine; nil if its host was not released.
func (a *Situation) recordOf(m quorum.Machine) *ReleasedHost {
	at := slices.IndexFunc(a.ReleasedHosts, func(left ReleasedHost) bool { return a.isOf(left, m) })
	if at < 0 {
		return nil
	}
	return &a.ReleasedHosts[at]
}

// Released reports whether the host of a Machine is recorded.
func (a *Situation) Released(m quorum.Machine) bool { return a.recordOf(m) != nil }

// Releasing names the hosts that are being released: the Machines that are being deleted, and the origins of
// the other recorded hosts.
func (a *Situation) Releasing() (machines, left []string) {
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() {
			machines = append(machines, m.Name)
		}
	}
	for _, host := range a.ReleasedHosts {
		if !a.hasDeletingMachine(host) {
			left = append(left, host.Origin())
		}
	}
	return machines, left
}

// hasDeletingMachine reports whether a recorded host belongs to a Machine of the control plane that is being
// deleted.
func (a *Situation) hasDeletingMachine(left ReleasedHost) bool {
	return slices.ContainsFunc(a.Machines, func(m quorum.Machine) bool { return !m.Deleted.IsZero() && a.isOf(left, m) })
}

// DeletingMachine returns the Machine of a recorded host that is being deleted and no longer has our hook.
func (a *Situation) DeletingMachine(left ReleasedHost) (m quorum.Machine, found bool) {
	all := slices.Concat(a.Machines, a.Others)
	at := slices.IndexFunc(all, func(m quorum.Machine) bool { return !m.Deleted.IsZero() && !m.HasHook && a.isOf(left, m) })
	if at < 0 {
		return quorum.Machine{}, false
	}
	return all[at], true
}

// Record returns the encoded records; "" if there are none.
func Record(hosts []ReleasedHost) (string, error) {
	if len(hosts) == 0 {
		return "", nil
	}
	recorded, err := json.Marshal(hosts)
	return string(recorded), err
}

// Recorded returns the records with one added or extended, and whether that changes anything.
func (a *Situation) Recorded(left ReleasedHost) (recorded []ReleasedHost, changed bool) {
	recorded = slices.Clone(a.ReleasedHosts)
	at := slices.IndexFunc(recorded, left.same)
	switch {
	case left.Node == "" && left.Machine == "":
		return recorded, false
	case at < 0:
		return append(recorded, left), true
	}
	before := recorded[at]
	left.Machine, left.MachineUID = cmp.Or(left.Machine, before.Machine), cmp.Or(left.MachineUID, before.MachineUID)
	left.ProviderID, left.HostUID = cmp.Or(left.ProviderID, before.ProviderID), cmp.Or(left.HostUID, before.HostUID)
	if before.Node != "" {
		left.Node, left.UID = before.Node, before.UID
	}
	left.Addresses, left.Members = join(before.Addresses, left.Addresses), join(before.Members, left.Members)
	left.Released = cmp.Or(before.Released, left.Released)
	recorded[at] = left
	return recorded, !equality.Semantic.DeepEqual(before, left)
}

// join appends the texts that known lacks.
func join(known, more []string) []string {
	joined := slices.Clone(known)
	for _, s := range more {
		if !slices.Contains(joined, s) {
			joined = append(joined, s)
		}
	}
	return joined
}

// Without returns the records without one.
func (a *Situation) Without(left ReleasedHost) []ReleasedHost {
	return slices.DeleteFunc(slices.Clone(a.ReleasedHosts), left.same)
}

// had reports whether the record has the ID of a member.
func (l ReleasedHost) had(member workload.EtcdMember) bool {
	return slices.Contains(l.Members, idOf(member))
}

// hasAddressOf reports whether the record has an address of a member.
func (l ReleasedHost) hasAddressOf(member workload.EtcdMember) bool {
	return slices.ContainsFunc(member.Hosts, func(host string) bool { return slices.Contains(l.Addresses, host) })
}

func idOf(m workload.EtcdMember) string { return strconv.FormatUint(m.ID, 16) }

// leaves returns the record for the host of a Machine.
func (v *view) leaves(m quorum.Machine, own *workload.EtcdMember) ReleasedHost {
	if m.Node == "" && m.ProviderID == "" && m.HostUID == "" {
		return ReleasedHost{} // nothing identifies the host
	}
	left := ReleasedHost{Machine: m.Name, MachineUID: m.UID, ProviderID: m.ProviderID, HostUID: m.HostUID, Node: m.Node}
	if node := v.Node(m.Node); node != nil {
		left.UID, left.Addresses = node.UID, node.Addresses
	}
	if own != nil {
		left.Addresses, left.Members = join(left.Addresses, own.Hosts), []string{idOf(*own)}
	}
	return left
}

// HostState is the state of a host that left etcd, derived from Machines and Nodes.
type HostState string

// The states of a host.
const (
	// Leaving is a host whose Machine is being deleted.
	Leaving HostState = "leaving"
	// Staying is a host whose Machine is not being deleted, or no longer. The Machine was moved from another
	// hub, or restored from a backup, without its deletion.
	Staying HostState = "staying"
	// Unconfirmed is a host that only an Agent assigns to a Machine which is not being deleted. With a stale
	// cache that Agent may have run on the host for the former Machine of the same name. The infrastructure
	// provider confirms the host, or the Agent is deleted.
	Unconfirmed HostState = "unproven"
	// Remaining is a host whose Node exists without a Machine. WithoutNode is a host whose Machine exists
	// without a Node.
	Remaining   HostState = "remaining"
	WithoutNode HostState = "without Node"
	// Deleted is a host whose Machine and Node are deleted, or whose name another Node has.
	Deleted HostState = "gone"
)

// StateOf returns the state of a recorded host.
func (a *Situation) StateOf(left ReleasedHost) HostState {
	at := slices.IndexFunc(a.Registered, func(n workload.Node) bool { return n.Name == left.Node })
	same := a.registered(left) != nil
	state := Deleted
	if same {
		state = Remaining
	}
	for _, m := range slices.Concat(a.Machines, a.Others) {
		switch {
		case !a.isOf(left, m):
		case !m.Deleted.IsZero():
			return Leaving
		case same && m.ProviderID != "":
			state = Staying
		case same && state != Staying: // an Agent of another Machine does not change a confirmed state
			state = Unconfirmed
		case at < 0:
			state = WithoutNode
		}
	}
	return state
}

// nodeExists begins the message about a Node that is left behind. Its argument is the name of the Node.
const nodeExists = "Node %s still exists although its Machine was deleted"

// remains waits until the user deletes a Node whose Machine was deleted.
func (l ReleasedHost) remains() decision.Blocker {
	return decision.Watch(
		controlplanev1.WaitingForMachinesDeletionReason,
		nodeExists+". Switch its host off, then delete the Node, which wipes nothing",
		l.Node,
	)
}

// mayBeDeleted reports whether the record suffices for the deletion of the Node: this provider released the
// host, and read its Node before. Addresses are recorded only for such a Node. A Node that registered later
// was found by its identity alone.
func (l ReleasedHost) mayBeDeleted() bool {
	return l.Released != nil && l.UID != "" && len(l.Addresses) > 0
}

// Stalled returns the action for a host whose removal does not proceed; nil if it proceeds.
func (l ReleasedHost) Stalled(state HostState) *decision.Blocker {
	var blocker decision.Blocker
	switch state {
	case Remaining:
		if l.mayBeDeleted() {
			return nil
		}
		blocker = l.remains()
	case WithoutNode:
		blocker = decision.Watch(
			controlplanev1.WaitingForMachinesDeletionReason,
			"Node %s, whose host was about to leave etcd, was deleted, but its Machine is not being deleted. Delete the Machine, which wipes "+
				"its host, or make the host join again",
			l.Node,
		)
	case Leaving, Staying, Unconfirmed, Deleted:
		return nil
	}
	return &blocker
}

// DecideLeaving returns the next step for a released host that may still run; Release if there is none.
// OpenShift adds running hosts to etcd, even a host that is about to be wiped. As long as the host runs, its
// member is removed by the rules for all members. A deleted voter costs etcd no more than a removed one.
func (a *Situation) DecideLeaving(m quorum.Machine, left ReleasedHost, etcd *workload.Etcd) Step {
	v := view{Situation: a, Etcd: etcd}
	if foreign := quorum.Unclear(v.Etcd); foreign != nil {
		return blocked(*foreign).about(m)
	}
	left = left.on(v.nodes())
	at := slices.IndexFunc(v.Members, func(member workload.EtcdMember) bool { return v.isBack(member, left) })
	if at < 0 {
		if unproven := v.reregistered(m, left); unproven != nil {
			return blocked(*unproven).about(m)
		}
		return Step{Action: Release, Machine: m}
	}
	step := v.remove(v.Members[at])
	step.Machine, step.Leaves = m, left
	step.Leaves.Addresses, step.Leaves.Members = join(left.Addresses, v.Members[at].Hosts), join(left.Members, []string{idOf(v.Members[at])})
	return step
}

// reregistered blocks while a Node with the name of the released host's Node, but with another UID, may be
// that host. Its kubelet reports, or etcd has a member of it. It returns nil if no such Node exists, if it is
// proven to be another host, or if it does not run. A member that is removed by mistake belongs to a healthy
// host. A member that is overlooked is wiped while it votes.
func (v *view) reregistered(m quorum.Machine, left ReleasedHost) *decision.Blocker {
	node := v.Node(left.Node)
	if node == nil || node.UID == left.UID || v.isAnotherHost(node.Node, left) {
		return nil
	}
	cause := "its kubelet reports"
	at := slices.IndexFunc(v.Members, func(member workload.EtcdMember) bool { return v.claims(member, left) })
	switch {
	case at >= 0:
		cause = fmt.Sprintf("etcd member %s has its name or its address", quorum.NameOf(v.Members[at]))
	case node.Silent:
		return nil
	}
	blocker := decision.Wait(
		controlplanev1.EtcdHostNotIdentifiedReason,
		"Node %s may be the host of Machine %s again, which is being deleted: %s, and nothing proves that the Node runs on another "+
			"host. If the server of the Machine runs, unplug it, then delete the Node, which wipes nothing. If another host runs as the "+
			"Node, wait until the infrastructure provider has set its providerID",
		node.Name,
		m.Name,
		cause,
	)
	return &blocker
}

// isAnotherHost reports whether a Node is proven to run on another host than the released one. Another
// Machine runs as the Node, or its identity differs. A new UID proves nothing, because a kubelet whose Node
// was deleted registers a Node with another UID.
func (v *view) isAnotherHost(node workload.Node, left ReleasedHost) bool {
	if slices.ContainsFunc(slices.Concat(v.Machines, v.Others), func(m quorum.Machine) bool { return m.Deleted.IsZero() && m.RunsAs(node) }) {
		return true
	}
	identities := [][2]string{{left.ProviderID, node.ProviderID}, {left.HostUID, node.HostUID}}
	differs := func(id [2]string) bool { return id[0] != "" && id[1] != "" && id[0] != id[1] }
	agrees := func(id [2]string) bool { return id[0] != "" && id[0] == id[1] }
	return slices.ContainsFunc(identities, differs) && !slices.ContainsFunc(identities, agrees)
}

// isBack reports whether a member belongs to a released host whose Machine exists.
func (v *view) isBack(member workload.EtcdMember, left ReleasedHost) bool {
	at, node := v.NodeAt(&member), v.Node(left.Node)
	switch {
	case left.had(member):
		return true
	case left.Node == "":
		return false
	case node != nil && node.UID != left.UID:
		return v.isAnotherHost(node.Node, left) && v.isOfHost(member, left)
	case member.Name == "":
		return at == left.Node || at == "" && left.hasAddressOf(member)
	}
	return member.Name == left.Node && (at == left.Node || at == "")
}

// nodes returns the Nodes of the control plane without their addresses.
func (v *view) nodes() []workload.Node {
	nodes := make([]workload.Node, 0, len(v.Nodes))
	for _, n := range v.Nodes {
		nodes = append(nodes, n.Node)
	}
	return nodes
}

// DecideReleased returns the next step for a recorded host whose Machine and Node are deleted. OpenShift adds
// members automatically: it may have added the host again between the removal of its member and its shutdown.
func (a *Situation) DecideReleased(left ReleasedHost, etcd *workload.Etcd) Step {
	v := view{Situation: a, Etcd: etcd}
	if foreign := quorum.Unclear(v.Etcd); foreign != nil {
		return blocked(*foreign)
	}
	left = left.on(v.nodes())
	node := v.Node(left.Node)
	if node != nil && node.UID == left.UID {
		return blocked(left.remains())
	}
	at := slices.IndexFunc(v.Members, func(m workload.EtcdMember) bool { return v.isOfHost(m, left) })
	switch {
	case at < 0 && node != nil:
		return v.decideNamesake(node)
	case at < 0:
		return Step{Action: Release}
	case v.Members[at].Healthy():
		return blocked(
			decision.Wait(
				controlplanev1.ReleasedHostRunningReason,
				"the host of %s was released and its Machine is deleted, but its etcd member answers. Switch the host off, or find out who runs it",
				left.Origin(),
			),
		)
	}
	return v.remove(v.Members[at])
}

// DecideNode returns the Node of a released host that Cluster API has left behind and that may be deleted, or
// the blocker of its deletion. Cluster API leaves the Node of the first control-plane Machine if all are
// deleted at once (core 1.12, isDeleteNodeAllowed). It also leaves any Node whose deletion takes longer than
// nodeDeletionTimeout. assisted-service deletes only the Nodes of hosts whose Agents it has, which it lacks
// after a move. silence is how long the kubelet of the Node has not reported, as observed by this process.
func (a *Situation) DecideNode(
	left ReleasedHost, etcd *workload.Etcd, silence time.Duration,
) (node *workload.ControlPlaneNode, against *decision.Blocker) {
	v := view{Situation: a, Etcd: etcd}
	if foreign := quorum.Unclear(v.Etcd); foreign != nil {
		return nil, foreign
	}
	if against := v.againstDeletion(left, silence); against != nil {
		return nil, against
	}
	return v.Node(left.Node), nil
}

// againstDeletion returns what blocks the deletion of the Node of a released host. A server that is cut off, or
// reboots, does not report for minutes. If its Node is deleted meanwhile, its Pods run twice, and its kubelet does
// not register again until it restarts.
func (v *view) againstDeletion(left ReleasedHost, silence time.Duration) *decision.Blocker {
	node := v.Node(left.Node)
	var blocker decision.Blocker
	switch at := slices.IndexFunc(v.Members, func(m workload.EtcdMember) bool { return v.claims(m, left) && !v.isDown(m) }); {
	case node == nil, node.UID != left.UID, !left.mayBeDeleted():
		blocker = left.remains() // the cache of Nodes is older, or the Node has lost the label of the control plane
	case node.Deleting:
		blocker = NodeDeleting(left)
	case v.isAnotherHost(node.Node, left):
		blocker = decision.Wait(
			controlplanev1.EtcdHostNotIdentifiedReason,
			nodeExists+", but the Node has another identity than the released host. Compare its providerID and its label %s with the "+
				"annotation %s. When its host is switched off, delete the Node, which wipes nothing",
			node.Name,
			metal3.HostUIDLabel,
			controlplanev1.ReleasedHostsAnnotation,
		)
	case !node.Silent:
		blocker = decision.Wait(
			controlplanev1.WaitingForMachinesDeletionReason,
			nodeExists+", and its condition Ready is not Unknown: its server may run. Waiting to delete the Node until its kubelet "+
				"does not report. If the server runs, switch it off",
			node.Name,
		)
	case at >= 0 && !v.Members[at].Healthy():
		blocker = decision.Wait(
			controlplanev1.ReleasedHostRunningReason,
			nodeExists+", and etcd member %s of this Node may serve: it does not answer through its kubelet, but the etcd operator "+
				"does not report it as unhealthy. Switch the server off: the Node is deleted when the etcd operator reports the member",
			node.Name,
			quorum.NameOf(v.Members[at]),
		)
	case at >= 0:
		blocker = decision.Wait(
			controlplanev1.ReleasedHostRunningReason,
			nodeExists+", and etcd member %s of this Node answers. Switch the server off: the Node is deleted when the member does not answer",
			node.Name,
			quorum.NameOf(v.Members[at]),
		)
	case silence < facts.UnreachableTime:
		blocker = decision.Wait(
			controlplanev1.WaitingForMachinesDeletionReason,
			nodeExists+", and its kubelet does not report. Waiting until the kubelet has not reported for %d minutes, then the Node "+
				"is deleted. If the server runs, switch it off",
			node.Name,
			int(facts.UnreachableTime.Minutes()),
		)
	default:
		return nil
	}
	return &blocker
}

// isDown reports whether a member is known not to serve. Members are queried through their kubelets, so a missing answer
// may be due to a silent kubelet. It proves that the member is down only if the etcd operator also names the member as
// unhealthy. A member without a name was never started.
func (v *view) isDown(m workload.EtcdMember) bool {
	return !m.Healthy() && (m.Name == "" || v.Condemns(m.Name))
}

// NodeDeleting waits until a Node is deleted. The watch of Nodes reports the end, but not which finalizer blocks it.
func NodeDeleting(left ReleasedHost) decision.Blocker {
	return decision.Wait(
		controlplanev1.WaitingForMachinesDeletionReason,
		"Node %s, whose Machine was deleted, is being deleted. Waiting until the Node does not exist. If it stays, find the "+
			"controllers of its metadata.finalizers",
		left.Node,
	)
}

// NodeForbidden waits because the credentials must not delete a Node.
func NodeForbidden(left ReleasedHost) decision.Blocker {
	return decision.Wait(
		controlplanev1.NodeDeletionForbiddenReason,
		nodeExists+": the credentials of the kubeconfig lack the permission to delete Nodes. Grant "+
			"the permission, or switch its host off, then delete the Node, which wipes nothing",
		left.Node,
	)
}

// NodeChanged waits after the API server has refused the deletion of a Node, because the Node changed since
// it was read.
func NodeChanged(left ReleasedHost) decision.Blocker {
	return decision.Wait(
		controlplanev1.WaitingForMachinesDeletionReason,
		nodeExists+", and it changed when it was to be deleted: its kubelet may report again. "+
			"Waiting for the next inspection",
		left.Node,
	)
}

// claims reports whether a member may belong to the released host or to the Node of its name. The recorded
// ID, the name or an address connect them.
func (v *view) claims(member workload.EtcdMember, left ReleasedHost) bool {
	return left.had(member) || member.Name == left.Node || v.NodeAt(&member) == left.Node || left.hasAddressOf(member)
}

// isOfHost reports whether a member belongs to a released host. A member that was never started has no
// name, only an address, which must not belong to another Node. A member at the address of a new Node of the
// same name does not count.
func (v *view) isOfHost(member workload.EtcdMember, left ReleasedHost) bool {
	at := v.NodeAt(&member)
	switch {
	case left.had(member):
		return true
	case member.Name == "":
		return at == "" && left.hasAddressOf(member)
	}
	return member.Name == left.Node && at != left.Node
}

// decideNamesake returns the next step if another host has the name of the released one. A member that is
// down may be the one that OpenShift added for the released host, at the same address.
func (v *view) decideNamesake(node *workload.ControlPlaneNode) Step {
	for _, m := range v.Members {
		if !m.Healthy() && (m.Name == node.Name || m.Name == "" && v.NodeAt(&m) == node.Name) {
			return blocked(
				decision.Wait(
					controlplanev1.EtcdHostNotIdentifiedReason,
					"etcd member %s (%x) %s: it is unknown whether it belongs to the released host, or to the host that is Node %s now. Waiting until it "+
						"is up. If that is impossible, remove it as OpenShift documents it",
					quorum.NameOf(m),
					m.ID,
					m.Problem,
					node.Name,
				),
			)
		}
	}
	return Step{Action: Release}
}
