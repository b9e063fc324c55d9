// Package removal decides what is to be done before the host of a control-plane Machine that is being deleted may be touched: etcd must keep its quorum, and must
// not keep the host as a member. It computes; it has no client. What is unknown is never taken for safe.
package removal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Machine is what matters here of a control-plane Machine.
type Machine struct {
	Name string
	// Node is that of its host, as far as it is known; ProviderID identifies the host.
	Node, ProviderID string
	// Deleted is when its deletion was asked for; zero: it was not.
	Deleted time.Time
	// Held tells whether it carries our hook, Waits whether all else that comes before it was done.
	Held, Waits bool
}

// Asked is what is decided upon without looking at etcd.
type Asked struct {
	// Machines are those of the control plane, Replicas how many there are to be.
	Machines []Machine
	Replicas int
	// Leftovers are the hosts that were released, of which not all is cleaned up.
	Leftovers []Leftover
}

// Leftover is a host that was released, as it was known when it was.
type Leftover struct {
	// Node and UID are those of its Node, Addresses the internal ones.
	Node      string    `json:"node"`
	UID       types.UID `json:"uid,omitempty"`
	Addresses []string  `json:"addresses,omitempty"`
}

// Action is what is to be done next.
type Action string

// The actions.
const (
	// Wait and tell why.
	Wait Action = "wait"
	// MoveLeader makes another member lead.
	MoveLeader Action = "move the leader"
	// RemoveMember takes the member out of etcd.
	RemoveMember Action = "remove the member"
	// Release lets the Machine go on: its host is no member of etcd.
	Release Action = "release"
)

// Step is the next one on the way.
type Step struct {
	Action Action
	// Machine is the one that it is about.
	Machine Machine
	// Member is that of its host; To is who is to lead, Via through whom the member is removed.
	Member, To, Via facts.EtcdMember
	// Reason and Message tell people what is waited for, and what they can do.
	Reason, Message string
}

func wait(reason, format string, args ...any) Step {
	return Step{Action: Wait, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Due tells which Machines wait for their members to be removed, or which of those that are being deleted comes first. With neither, nothing is to be done.
func (a *Asked) Due() (due []Machine, before *Step) {
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() && m.Held && m.Waits {
			due = append(due, m)
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	slices.SortFunc(due, func(m, n Machine) int { return cmp.Or(m.Deleted.Compare(n.Deleted), cmp.Compare(m.Name, n.Name)) })
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() && !m.Held {
			step := wait(controlplanev1.WaitingForMachinesDeletionReason, "Machine %s is being removed, which comes first: see its condition Deleting", m.Name)
			step.Machine = due[0]
			return nil, &step
		}
	}
	for _, left := range a.Leftovers {
		// Of a Machine that is still held: it was about to be released.
		if at := slices.IndexFunc(due, func(m Machine) bool { return m.Node == left.Node }); at >= 0 {
			return due[at : at+1], nil
		}
		step := wait(controlplanev1.WaitingForMachinesDeletionReason, "what is left of Node %s, whose host was released before, comes first", left.Node)
		step.Machine = due[0]
		return nil, &step
	}
	return due, nil
}

// Decide is the next step for the Machines that are due. A member that is not healthy goes first, for OpenShift adds none while there is one; then the Machine whose
// deletion is the oldest.
func (a *Asked) Decide(due []Machine, etcd *facts.Etcd) Step {
	v := view{Asked: a, Etcd: etcd}
	first := due[0]
	for _, m := range due {
		if own, doubt := v.memberOf(m); doubt == "" && own != nil && !own.Healthy() {
			first = m
			break
		}
	}
	step := v.decide(first)
	step.Machine = first
	return step
}

// DecideLeftover is the next step for what is left of a Node that is gone with its Machine. OpenShift adds members by itself: it may have taken the host in once
// more, between the removal of its member and its end.
func (a *Asked) DecideLeftover(left Leftover, etcd *facts.Etcd) Step {
	v := view{Asked: a, Etcd: etcd}
	return v.decideLeftover(left)
}

// view is all that is decided upon.
type view struct {
	*Asked
	*facts.Etcd
}

func (v *view) decide(m Machine) Step {
	if step := v.foreign(); step != nil {
		return *step
	}
	own, doubt := v.memberOf(m)
	switch {
	case doubt != "":
		return wait(controlplanev1.EtcdUnknownReason, "%s", doubt)
	case own == nil:
		return Step{Action: Release}
	}
	return v.remove(*own)
}

func (v *view) decideLeftover(left Leftover) Step {
	if step := v.foreign(); step != nil {
		return *step
	}
	at := slices.IndexFunc(v.Members, func(m facts.EtcdMember) bool { return v.isLeftover(m, left) })
	switch {
	case v.Node(left.Node) != nil:
		return wait(controlplanev1.EtcdUnknownReason, "%s", NodeRemains(left.Node))
	case at < 0:
		return Step{Action: Release}
	case v.Members[at].Healthy():
		return wait(controlplanev1.EtcdUnknownReason, "Node %s is gone with its Machine, but its etcd member answers: switch the host off, or find out who runs it", left.Node)
	}
	return v.remove(v.Members[at])
}

// NodeRemains says what is to be done about a Node that is not deleted with its Machine.
func NodeRemains(node string) string {
	return fmt.Sprintf("Node %s is still there although its Machine is gone: delete it when its host is switched off", node)
}

// foreign is why nothing is decided here: because nothing can be told, or others decide.
func (v *view) foreign() *Step {
	var step Step
	switch {
	case v.Topology == "":
		step = wait(controlplanev1.EtcdUnknownReason, "the cluster does not tell the topology of its control plane: see status of Infrastructure cluster")
	case v.Topology != highlyAvailable && v.Topology != singleReplica:
		step = wait(controlplanev1.EtcdTopologyNotSupportedReason, "the control plane has the topology %q, whose etcd members are not touched from here: remove the member as OpenShift "+
			"documents it for that topology, then take the annotation %s off the Machine", v.Topology, controlplanev1.EtcdMemberHookAnnotation)
	case v.Doubt != "":
		step = wait(controlplanev1.EtcdUnknownReason, "%s", v.Doubt)
	case len(v.Members) == 0:
		step = wait(controlplanev1.EtcdUnknownReason, "no etcd member answers: see the Pods with the label app=etcd in namespace openshift-etcd of the cluster")
	default:
		return nil
	}
	return &step
}

// remove is the next step to get a member out of etcd.
func (v *view) remove(own facts.EtcdMember) Step {
	for _, check := range []func(facts.EtcdMember) *Step{v.last, v.operated, v.joining, v.quorum, v.settled} {
		if step := check(own); step != nil {
			step.Member = own
			return *step
		}
	}
	step := v.lead(own)
	step.Member = own
	return step
}

// last is about the only member.
func (v *view) last(own facts.EtcdMember) *Step {
	if own.Learner || len(v.Voters()) > 1 {
		return nil
	}
	step := wait(controlplanev1.LastEtcdMemberReason, "its host is the only member of etcd, with all that the cluster knows: delete the Cluster if it is not needed any more; "+
		"a Machine alone is never taken out of it")
	return &step
}

// operated is about clusters whose etcd operator removes members itself.
func (v *view) operated(own facts.EtcdMember) *Step {
	if !v.MachineAPI {
		return nil
	}
	step := wait(controlplanev1.WaitingForMachineAPIReason, "the cluster's own Machine API runs its control plane, so its etcd operator removes members: delete the Machine of Node %s in "+
		"namespace openshift-machine-api of the cluster, and see ClusterOperator etcd for what it waits for", own.Name)
	return &step
}

// joining is about members that are on their way into the quorum.
func (v *view) joining(own facts.EtcdMember) *Step {
	for _, m := range v.Members {
		if m.ID != own.ID && m.Learner {
			step := wait(controlplanev1.WaitingForEtcdReason, "etcd member %s is joining: waiting until it votes", nameOf(m))
			return &step
		}
	}
	return nil
}

// quorumOf is how many of a number of voters must agree.
func quorumOf(voters int) int { return voters/2 + 1 }

// leastReplicas is the smallest control plane that survives the loss of a host. A larger one is not taken below its quorum, one after the other.
const leastReplicas = 3

// quorum is about what is left. To remove a member that is down never lowers what etcd survives; one that serves is removed only while all others do, and while
// enough are left to be a quorum of the control plane that is wanted.
func (v *view) quorum(own facts.EtcdMember) *Step {
	voters := v.Voters()
	others := slices.DeleteFunc(slices.Clone(voters), func(m facts.EtcdMember) bool { return m.ID == own.ID })
	down := slices.DeleteFunc(slices.Clone(others), facts.EtcdMember.Healthy)
	healthy, serving := len(others)-len(down), 0
	for _, m := range voters {
		if m.Healthy() {
			serving++
		}
	}
	var step Step
	switch {
	case serving < quorumOf(len(voters)):
		step = wait(controlplanev1.EtcdQuorumAtRiskReason, "etcd has too few healthy members for a quorum: of %d only %d are, and %d are needed (%s). Bring hosts back; if that cannot be, "+
			"restore etcd as OpenShift documents it", len(voters), serving, quorumOf(len(voters)), problems(voters))
	case healthy < quorumOf(len(others)):
		step = wait(controlplanev1.EtcdQuorumAtRiskReason, "without it etcd would have no quorum: of the other %d members only %d are healthy (%s). Bring them back", len(others), healthy, problems(down))
	case own.Learner || !own.Healthy():
		return nil
	case len(down) > 0:
		step = wait(controlplanev1.EtcdQuorumAtRiskReason, "a healthy etcd member is removed only while all others are healthy: %s. Bring it back, or delete its Machine, which then comes first",
			problems(down))
	case len(others) < quorumOf(max(v.Replicas, leastReplicas)):
		step = wait(controlplanev1.WaitingForReplacementReason, "%d etcd members would be left, of at least %d that a control plane of %d Machines needs: waiting until another host has joined",
			len(others), quorumOf(max(v.Replicas, leastReplicas)), max(v.Replicas, leastReplicas))
	default:
		return nil
	}
	return &step
}

// lead makes another member the leader before the leader is removed, and the leader remove the member.
func (v *view) lead(own facts.EtcdMember) Step {
	at := slices.IndexFunc(v.Members, func(m facts.EtcdMember) bool { return m.Leader })
	switch {
	case at < 0:
		return wait(controlplanev1.EtcdUnknownReason, "the etcd members do not agree on who leads: waiting until they do")
	case !v.Members[at].Healthy():
		return wait(controlplanev1.EtcdUnknownReason, "etcd member %s leads but is not healthy (%s): waiting for another leader", nameOf(v.Members[at]), v.Members[at].Problem)
	case v.Members[at].ID != own.ID:
		return Step{Action: RemoveMember, Via: v.Members[at]}
	}
	var heirs []facts.EtcdMember
	for _, m := range v.Voters() {
		if m.ID != own.ID && m.Healthy() {
			heirs = append(heirs, m)
		}
	}
	if len(heirs) == 0 {
		return wait(controlplanev1.EtcdQuorumAtRiskReason, "no other etcd member can lead")
	}
	// Not to one that goes next, if there is another.
	slices.SortStableFunc(heirs, func(a, b facts.EtcdMember) int {
		return cmp.Or(cmp.Compare(v.goes(a.Name), v.goes(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return Step{Action: MoveLeader, To: heirs[0]}
}

// goes is 1 when the Machine of a Node is being deleted, else 0.
func (v *view) goes(node string) int {
	for _, m := range v.Machines {
		if m.Node == node && !m.Deleted.IsZero() {
			return 1
		}
	}
	return 0
}

// nameOf names a member for people.
func nameOf(m facts.EtcdMember) string {
	return cmp.Or(m.Name, fmt.Sprintf("%x (not started, %s)", m.ID, strings.Join(m.Hosts, ", ")))
}

// problems tells what is wrong with those of some members that are not healthy.
func problems(members []facts.EtcdMember) string {
	var told []string
	for _, m := range members {
		if !m.Healthy() {
			told = append(told, nameOf(m)+" "+m.Problem)
		}
	}
	return strings.Join(told, ", ")
}
