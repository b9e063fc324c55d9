package removal

import (
	"encoding/json"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Leftover is a host that leaves etcd, as it was known before it did: afterwards nothing tells of it.
type Leftover struct {
	// Node and UID are those of its Node, Addresses those by which its member could be reached, Members the IDs of its members, as etcdctl shows them.
	Node      string    `json:"node"`
	UID       types.UID `json:"uid,omitempty"`
	Addresses []string  `json:"addresses,omitempty"`
	Members   []string  `json:"members,omitempty"`
}

// Record is how leftovers are recorded; empty: there are none.
func Record(leftovers []Leftover) (string, error) {
	if len(leftovers) == 0 {
		return "", nil
	}
	recorded, err := json.Marshal(leftovers)
	return string(recorded), err
}

// Noted are the leftovers with one more, or with what is known of one by now, and whether that changes anything.
func (a *Asked) Noted(left Leftover) (noted []Leftover, changed bool) {
	noted = slices.Clone(a.Leftovers)
	at := slices.IndexFunc(noted, func(known Leftover) bool { return known.Node == left.Node && known.UID == left.UID })
	switch {
	case left.Node == "":
		return noted, false
	case at < 0:
		return append(noted, left), true
	}
	known := &noted[at]
	addresses, members := join(known.Addresses, left.Addresses), join(known.Members, left.Members)
	changed = len(addresses) > len(known.Addresses) || len(members) > len(known.Members)
	known.Addresses, known.Members = addresses, members
	return noted, changed
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
func (a *Asked) Without(left Leftover) []Leftover {
	return slices.DeleteFunc(slices.Clone(a.Leftovers), func(known Leftover) bool { return known.Node == left.Node && known.UID == left.UID })
}

// had tells whether a member is recorded.
func (l Leftover) had(member facts.EtcdMember) bool { return slices.Contains(l.Members, idOf(member)) }

func idOf(m facts.EtcdMember) string { return strconv.FormatUint(m.ID, 16) }

// leaves is what the host of a Machine leaves behind.
func (v *view) leaves(m Machine, own *facts.EtcdMember) Leftover {
	if m.Node == "" {
		return Leftover{}
	}
	left := Leftover{Node: m.Node}
	if node := v.Node(m.Node); node != nil {
		left.UID, left.Addresses = node.UID, node.Addresses
	}
	if own != nil {
		left.Addresses, left.Members = join(left.Addresses, own.Hosts), []string{idOf(*own)}
	}
	return left
}

// Fate is what became of a host that left etcd, as Machines and Nodes tell.
type Fate string

// The fates.
const (
	// Leaving is one whose Machine is being deleted.
	Leaving Fate = "leaving"
	// Staying is one whose Machine is not, or no more: it came without its deletion from another hub, or out of a backup.
	Staying Fate = "staying"
	// Remaining is one of which the Node is there, but no Machine, Nodeless one of which the Machine lives on, but has no Node.
	Remaining Fate = "remaining"
	Nodeless  Fate = "without Node"
	// Gone is one whose Machine is gone with its Node, or whose name is that of another Node by now.
	Gone Fate = "gone"
)

// FateOf tells what became of a host.
func (a *Asked) FateOf(left Leftover, nodes []facts.Node) Fate {
	at := slices.IndexFunc(nodes, func(n facts.Node) bool { return n.Name == left.Node })
	same := at >= 0 && nodes[at].UID == left.UID
	fate := Gone
	if same {
		fate = Remaining
	}
	for _, m := range slices.Concat(a.Machines, a.Others) {
		known := m.Node == left.Node || same && m.runsAs(nodes[at])
		switch {
		case !known:
		case !m.Deleted.IsZero():
			return Leaving
		case same:
			fate = Staying
		case at < 0:
			fate = Nodeless
		}
	}
	return fate
}

// Rests says what is to be done about a host that does not go as it should; nil: it does.
func (l Leftover) Rests(fate Fate) *Step {
	var step Step
	switch fate {
	case Remaining:
		step = Watch(controlplanev1.WaitingForMachinesDeletionReason, "Node %s is still there although its Machine is gone: delete it when its host is switched off", l.Node)
	case Nodeless:
		step = Watch(controlplanev1.WaitingForMachinesDeletionReason, "Node %s, whose host was about to leave etcd, is gone, but its Machine is not being deleted: delete the Machine, "+
			"or make the host join again", l.Node)
	case Leaving, Staying, Gone:
		return nil
	}
	return &step
}

// DecideLeftover is the next step for what is left of a Node that is gone with its Machine. OpenShift adds members by itself: it may have taken the host in once
// more, between the removal of its member and its end.
func (a *Asked) DecideLeftover(left Leftover, etcd *facts.Etcd) Step {
	v := view{Asked: a, Etcd: etcd}
	if step := v.foreign(); step != nil {
		return *step
	}
	node := v.Node(left.Node)
	if node != nil && node.UID == left.UID {
		return *left.Rests(Remaining)
	}
	at := slices.IndexFunc(v.Members, func(m facts.EtcdMember) bool { return v.isLeftover(m, left) })
	switch {
	case at < 0 && node != nil:
		return v.decideNamesake(node)
	case at < 0:
		return Step{Action: Release}
	case v.Members[at].Healthy():
		return wait(controlplanev1.EtcdUnknownReason, "the host of Node %s was released and its Machine is gone, but its etcd member answers: switch the host off, or find out who runs it", left.Node)
	}
	return v.remove(v.Members[at])
}

// isLeftover tells whether a member is that of a host that was released. One that was never started has no name, only an address, which no other Node may have by
// now. Nor is one that is where a new Node of the name is.
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

// decideNamesake is about another host that has the name of the one that was released. As long as its member is down, that may as well be the one that OpenShift
// made for the first, at the same address.
func (v *view) decideNamesake(node *facts.ControlPlaneNode) Step {
	for _, m := range v.Members {
		if !m.Healthy() && (m.Name == node.Name || m.Name == "" && v.nodeAt(&m) == node.Name) {
			return wait(controlplanev1.EtcdUnknownReason, "etcd member %s (%x) %s: it cannot be told whether it is that of the host that was released, or of the one that is Node %s now. Waiting until "+
				"it is up; if that cannot be, remove it as OpenShift documents it", nameOf(m), m.ID, m.Problem, node.Name)
		}
	}
	return Step{Action: Release}
}
