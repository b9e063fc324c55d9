package removal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Leftover is a host that leaves etcd, as it was known before it did: afterwards nothing tells of it.
type Leftover struct {
	// Machine is its name; ProviderID and HostUID identify the host, as in [Machine]. Of a host that was no Node
	// nothing else is known. Records of earlier versions lack them.
	Machine    string `json:"machine,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	HostUID    string `json:"hostUID,omitempty"`
	// Node and UID are those of its Node, Addresses those by which its member could be reached, Members the IDs of its
	// members, as etcdctl shows them.
	Node      string    `json:"node,omitempty"`
	UID       types.UID `json:"uid,omitempty"`
	Addresses []string  `json:"addresses,omitempty"`
	Members   []string  `json:"members,omitempty"`
	// Released is when our hook was removed, as the member was gone from etcd; nil: not yet, or the hook was removed by hand.
	Released *metav1.Time `json:"released,omitempty"`
}

// From names for people where it comes from.
func (l Leftover) From() string {
	if l.Node == "" {
		return "Machine " + l.Machine
	}
	return "Node " + l.Node
}

// on is what is recorded with the Node that the host became since.
func (l Leftover) on(nodes []facts.Node) Leftover {
	host := Machine{ProviderID: l.ProviderID, HostUID: l.HostUID}
	if at := slices.IndexFunc(nodes, host.runsAs); l.Node == "" && at >= 0 {
		l.Node, l.UID = nodes[at].Name, nodes[at].UID
	}
	return l
}

// same reports whether two records are of one host: of one Node, or of one Machine before it had any.
func (l Leftover) same(other Leftover) bool {
	if l.Node != "" && other.Node != "" {
		return l.Node == other.Node && l.UID == other.UID
	}
	return l.Machine != "" && l.Machine == other.Machine && l.ProviderID == other.ProviderID && l.HostUID == other.HostUID
}

// registered is the Node of a host that is recorded; nil when it is gone, or another has its name.
func (a *Situation) registered(left Leftover) *facts.Node {
	at := slices.IndexFunc(a.Registered, func(n facts.Node) bool { return n.Name == left.Node && n.UID == left.UID })
	if at < 0 {
		return nil
	}
	return &a.Registered[at]
}

// isOf reports whether what is recorded is of the host of a Machine: they have the Node in common, by its name or by
// what it is; or the name of the Machine, if nothing speaks against that. The latter counts while it is being deleted:
// one that lives may be the next of that name, even on the same host.
func (a *Situation) isOf(left Leftover, m Machine) bool {
	node := a.registered(left)
	switch {
	case m.Node != "" && m.Node == left.Node, node != nil && m.runsAs(*node):
		return true
	case m.Deleted.IsZero() || left.Machine != m.Name:
		return false
	case left.ProviderID != "" && m.ProviderID != "":
		return left.ProviderID == m.ProviderID
	}
	return left.HostUID == "" || m.HostUID == "" || left.HostUID == m.HostUID
}

// Released reports whether the host of a Machine is recorded.
func (a *Situation) Released(m Machine) bool {
	return slices.ContainsFunc(a.Leftovers, func(left Leftover) bool { return a.isOf(left, m) })
}

// Going finds the Machine, no longer held, of a host that is on its way out.
func (a *Situation) Going(left Leftover) (m Machine, found bool) {
	all := slices.Concat(a.Machines, a.Others)
	at := slices.IndexFunc(all, func(m Machine) bool { return !m.Deleted.IsZero() && !m.Held && a.isOf(left, m) })
	if at < 0 {
		return Machine{}, false
	}
	return all[at], true
}

// Record is how leftovers are recorded; empty: there are none.
func Record(leftovers []Leftover) (string, error) {
	if len(leftovers) == 0 {
		return "", nil
	}
	recorded, err := json.Marshal(leftovers)
	return string(recorded), err
}

// Recorded are the leftovers with one more, or with what is known of one by now, and whether that changes anything.
func (a *Situation) Recorded(left Leftover) (recorded []Leftover, changed bool) {
	recorded = slices.Clone(a.Leftovers)
	at := slices.IndexFunc(recorded, left.same)
	switch {
	case left.Node == "" && left.Machine == "":
		return recorded, false
	case at < 0:
		return append(recorded, left), true
	}
	before := recorded[at]
	left.Machine, left.ProviderID, left.HostUID = cmp.Or(left.Machine, before.Machine), cmp.Or(left.ProviderID, before.ProviderID), cmp.Or(left.HostUID, before.HostUID)
	if before.Node != "" {
		left.Node, left.UID = before.Node, before.UID
	}
	left.Addresses, left.Members = join(before.Addresses, left.Addresses), join(before.Members, left.Members)
	left.Released = cmp.Or(before.Released, left.Released)
	recorded[at] = left
	return recorded, !equality.Semantic.DeepEqual(before, left)
}

// join appends what is not there yet.
func join(known, more []string) []string {
	joined := slices.Clone(known)
	for _, s := range more {
		if !slices.Contains(joined, s) {
			joined = append(joined, s)
		}
	}
	return joined
}

// Without are the leftovers without one.
func (a *Situation) Without(left Leftover) []Leftover {
	return slices.DeleteFunc(slices.Clone(a.Leftovers), left.same)
}

// had reports whether a member is recorded.
func (l Leftover) had(member facts.EtcdMember) bool { return slices.Contains(l.Members, idOf(member)) }

func idOf(m facts.EtcdMember) string { return strconv.FormatUint(m.ID, 16) }

// leaves is what the host of a Machine leaves behind.
func (v *view) leaves(m Machine, own *facts.EtcdMember) Leftover {
	if m.Node == "" && m.ProviderID == "" && m.HostUID == "" {
		return Leftover{} // by nothing could it be known
	}
	left := Leftover{Machine: m.Name, ProviderID: m.ProviderID, HostUID: m.HostUID, Node: m.Node}
	if node := v.Node(m.Node); node != nil {
		left.UID, left.Addresses = node.UID, node.Addresses
	}
	if own != nil {
		left.Addresses, left.Members = join(left.Addresses, own.Hosts), []string{idOf(*own)}
	}
	return left
}

// HostState is what became of a host that left etcd, as Machines and Nodes tell.
type HostState string

// The fates.
const (
	// Leaving is one whose Machine is being deleted.
	Leaving HostState = "leaving"
	// Staying is one whose Machine is not, or no more: it came without its deletion from another hub, or out of a backup.
	Staying HostState = "staying"
	// Unproven is one of which nothing but an Agent says that it has a Machine, which is not being deleted: behind a
	// lagging cache that Agent may be the one which ran on it for the former Machine of the name. The infrastructure
	// provider proves it, or the Agent goes.
	Unproven HostState = "unproven"
	// Remaining is one of which the Node is there, but no Machine, Nodeless one of which the Machine lives on, but has no Node.
	Remaining HostState = "remaining"
	Nodeless  HostState = "without Node"
	// Gone is one whose Machine is gone with its Node, or whose name is that of another Node by now.
	Gone HostState = "gone"
)

// StateOf tells what became of a host.
func (a *Situation) StateOf(left Leftover) HostState {
	at := slices.IndexFunc(a.Registered, func(n facts.Node) bool { return n.Name == left.Node })
	same := a.registered(left) != nil
	state := Gone
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
		case same && state != Staying: // what is proven of one Machine no Agent of another takes away
			state = Unproven
		case at < 0:
			state = Nodeless
		}
	}
	return state
}

// remains waits until the user deletes a Node whose Machine was deleted.
func (l Leftover) remains() decision.Blocker {
	return decision.Watch(controlplanev1.WaitingForMachinesDeletionReason, "Node %s still exists although its Machine was deleted. Switch its host off, then delete the Node, which wipes nothing", l.Node)
}

// mayBeDeleted reports whether the record suffices for the deletion of the Node: we released the host, and knew its
// Node before. Addresses are recorded only of a Node that was read then. A Node that registered later was found by its
// identity alone.
func (l Leftover) mayBeDeleted() bool {
	return l.Released != nil && l.UID != "" && len(l.Addresses) > 0
}

// Rests says what is to be done about a host that does not go as it should; nil: it does.
func (l Leftover) Rests(state HostState) *decision.Blocker {
	var blocker decision.Blocker
	switch state {
	case Remaining:
		if l.mayBeDeleted() {
			return nil
		}
		blocker = l.remains()
	case Nodeless:
		blocker = decision.Watch(controlplanev1.WaitingForMachinesDeletionReason, "Node %s, whose host was about to leave etcd, was deleted, but its Machine is not being deleted. Delete the Machine, which wipes "+
			"its host, or make the host join again", l.Node)
	case Leaving, Staying, Unproven, Gone:
		return nil
	}
	return &blocker
}

// DecideLeaving is the next step for a host that was released and may still run; Release: there is nothing to be done.
// OpenShift takes in hosts that run, also one that is to be wiped. As long as it runs, its member goes by the rules for
// all: a voter that is gone costs etcd no more than one that was removed.
func (a *Situation) DecideLeaving(m Machine, left Leftover, etcd *facts.Etcd) Step {
	v := view{Situation: a, Etcd: etcd}
	if foreign := v.foreign(); foreign != nil {
		return blocked(*foreign).about(m)
	}
	left = left.on(v.nodes())
	at := slices.IndexFunc(v.Members, func(member facts.EtcdMember) bool { return v.isBack(member, left) })
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

// reregistered waits while a Node with the name of the released host's Node, but with another UID, may be that host:
// its kubelet reports, or etcd has a member of it. nil: no such Node exists, it is proven to be another host, or
// nothing of it runs. A member that is removed by mistake belongs to a healthy host, and one that is overlooked is
// wiped while it votes.
func (v *view) reregistered(m Machine, left Leftover) *decision.Blocker {
	node := v.Node(left.Node)
	if node == nil || node.UID == left.UID || v.isAnotherHost(node.Node, left) {
		return nil
	}
	cause := "its kubelet reports"
	at := slices.IndexFunc(v.Members, func(member facts.EtcdMember) bool { return v.claims(member, left) })
	switch {
	case at >= 0:
		cause = fmt.Sprintf("etcd member %s has its name or its address", nameOf(v.Members[at]))
	case node.Silent:
		return nil
	}
	blocker := decision.Wait(controlplanev1.EtcdUnknownReason, "Node %s may be the host of Machine %s again, which is being deleted: %s, and nothing proves that the Node runs on another host. If the server of the Machine runs, "+
		"unplug it, then delete the Node, which wipes nothing. If another host runs as the Node, wait until the infrastructure provider has set its providerID", node.Name, m.Name, cause)
	return &blocker
}

// isAnotherHost reports whether a Node is proven to run on another host than the released one: another Machine runs as
// the Node, or its identity differs. A new UID proves nothing: a kubelet whose Node was deleted registers a Node with
// another UID.
func (v *view) isAnotherHost(node facts.Node, left Leftover) bool {
	if slices.ContainsFunc(slices.Concat(v.Machines, v.Others), func(m Machine) bool { return m.Deleted.IsZero() && m.runsAs(node) }) {
		return true
	}
	identities := [][2]string{{left.ProviderID, node.ProviderID}, {left.HostUID, node.HostUID}}
	differs := func(id [2]string) bool { return id[0] != "" && id[1] != "" && id[0] != id[1] }
	agrees := func(id [2]string) bool { return id[0] != "" && id[0] == id[1] }
	return slices.ContainsFunc(identities, differs) && !slices.ContainsFunc(identities, agrees)
}

// isBack reports whether a member is that of a released host whose Machine is there.
func (v *view) isBack(member facts.EtcdMember, left Leftover) bool {
	at, node := v.nodeAt(&member), v.Node(left.Node)
	switch {
	case left.had(member):
		return true
	case left.Node == "":
		return false
	case node != nil && node.UID != left.UID:
		return v.isAnotherHost(node.Node, left) && v.isLeftover(member, left)
	case member.Name == "":
		return at == left.Node || at == "" && slices.ContainsFunc(member.Hosts, func(host string) bool { return slices.Contains(left.Addresses, host) })
	}
	return member.Name == left.Node && (at == left.Node || at == "")
}

// nodes are those of the control plane, without their addresses.
func (v *view) nodes() []facts.Node {
	nodes := make([]facts.Node, 0, len(v.Nodes))
	for _, n := range v.Nodes {
		nodes = append(nodes, n.Node)
	}
	return nodes
}

// DecideLeftover is the next step for what is left of a Node that is gone with its Machine. OpenShift adds members by
// itself: it may have taken the host in once more, between the removal of its member and its end.
func (a *Situation) DecideLeftover(left Leftover, etcd *facts.Etcd) Step {
	v := view{Situation: a, Etcd: etcd}
	if foreign := v.foreign(); foreign != nil {
		return blocked(*foreign)
	}
	left = left.on(v.nodes())
	node := v.Node(left.Node)
	if node != nil && node.UID == left.UID {
		return blocked(left.remains())
	}
	at := slices.IndexFunc(v.Members, func(m facts.EtcdMember) bool { return v.isLeftover(m, left) })
	switch {
	case at < 0 && node != nil:
		return v.decideNamesake(node)
	case at < 0:
		return Step{Action: Release}
	case v.Members[at].Healthy():
		return blocked(decision.Wait(controlplanev1.EtcdUnknownReason, "the host of %s was released and its Machine is gone, but its etcd member answers: switch the host off, or find out who runs it", left.From()))
	}
	return v.remove(v.Members[at])
}

// DecideNode returns the Node of a released host, which Cluster API has left behind and which may be deleted, or what
// speaks against that. Cluster API leaves the Node of the first control-plane Machine if all are deleted at once (core
// 1.12, isDeleteNodeAllowed), and any Node when its deletion takes longer than nodeDeletionTimeout. assisted-service
// deletes only the Nodes of hosts whose Agents it has, which it has not after a move.
func (a *Situation) DecideNode(left Leftover, etcd *facts.Etcd) (node *facts.ControlPlaneNode, against *decision.Blocker) {
	v := view{Situation: a, Etcd: etcd}
	if foreign := v.foreign(); foreign != nil {
		return nil, foreign
	}
	if against := v.againstDeletion(left); against != nil {
		return nil, against
	}
	return v.Node(left.Node), nil
}

// againstDeletion is what speaks against the deletion of the Node of a released host.
func (v *view) againstDeletion(left Leftover) *decision.Blocker {
	const still = "Node %s still exists although its Machine was deleted, "
	node := v.Node(left.Node)
	var blocker decision.Blocker
	switch at := slices.IndexFunc(v.Members, func(m facts.EtcdMember) bool { return m.Healthy() && v.claims(m, left) }); {
	case node == nil, node.UID != left.UID, !left.mayBeDeleted():
		blocker = left.remains() // the cache of Nodes is older, or the Node has lost the label of the control plane
	case v.isAnotherHost(node.Node, left):
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, still+"but the Node has another identity than the released host. Compare its providerID and its label %s with the annotation %s. When its host is switched "+
			"off, delete the Node, which wipes nothing", node.Name, metal3.HostUIDLabel, controlplanev1.ReleasedHostsAnnotation)
	case !node.Silent:
		blocker = decision.Wait(controlplanev1.WaitingForMachinesDeletionReason, still+"and its condition Ready is not Unknown: its server may run. Waiting to delete the Node until its kubelet does not report. If the server "+
			"runs, switch it off", node.Name)
	case at >= 0:
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, still+"and etcd member %s of this Node answers. Switch the server off: the Node is deleted when the member does not answer", node.Name, nameOf(v.Members[at]))
	default:
		return nil
	}
	return &blocker
}

// NodeChanged waits after the API server has refused the deletion of a Node, because the Node changed since it was read.
func NodeChanged(left Leftover) decision.Blocker {
	return decision.Wait(controlplanev1.WaitingForMachinesDeletionReason, "Node %s still exists although its Machine was deleted, and it changed when it was to be deleted: its kubelet may report again. Waiting for the next inspection", left.Node)
}

// claims reports whether anything connects a member with the released host or with the Node of its name: the recorded
// ID, the name or an address.
func (v *view) claims(member facts.EtcdMember, left Leftover) bool {
	return left.had(member) || member.Name == left.Node || v.nodeAt(&member) == left.Node || slices.ContainsFunc(member.Hosts, func(host string) bool { return slices.Contains(left.Addresses, host) })
}

// isLeftover reports whether a member is that of a host that was released. One that was never started has no name, only
// an address, which no other Node may have by now. Nor is one that is where a new Node of the name is.
func (v *view) isLeftover(member facts.EtcdMember, left Leftover) bool {
	at := v.nodeAt(&member)
	switch {
	case left.had(member):
		return true
	case member.Name == "":
		return at == "" && slices.ContainsFunc(member.Hosts, func(host string) bool { return slices.Contains(left.Addresses, host) })
	}
	return member.Name == left.Node && at != left.Node
}

// decideNamesake is about another host that has the name of the one that was released. As long as its member is down,
// that may as well be the one that OpenShift made for the first, at the same address.
func (v *view) decideNamesake(node *facts.ControlPlaneNode) Step {
	for _, m := range v.Members {
		if !m.Healthy() && (m.Name == node.Name || m.Name == "" && v.nodeAt(&m) == node.Name) {
			return blocked(decision.Wait(controlplanev1.EtcdUnknownReason, "etcd member %s (%x) %s: it cannot be told whether it is that of the host that was released, or of the one that is Node %s now. Waiting until "+
				"it is up; if that cannot be, remove it as OpenShift documents it", nameOf(m), m.ID, m.Problem, node.Name))
		}
	}
	return Step{Action: Release}
}
