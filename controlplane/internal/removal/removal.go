// Package removal decides what is to be done before the host of a control-plane Machine that is being deleted may be
// touched: etcd must keep its quorum, and must not keep the host as a member. It computes; it has no client. What is
// unknown is never taken for safe.
package removal

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// Machine is what matters here of a control-plane Machine.
type Machine struct {
	Name string
	UID  types.UID
	// Node is that of its host, as far as it is known; ProviderID identifies the host, and so does HostUID, the label
	// that its Node is to have.
	Node, ProviderID, HostUID string
	// Deleted is when its deletion was asked for; zero: it was not.
	Deleted time.Time
	// Held reports whether it carries our hook, Waits whether all else that comes before it was done.
	Held, Waits bool
	// Blocker is, for people, what Cluster API waits for before our hook; empty: nothing is known.
	Blocker string
	// Terminating reports that Cluster API has passed all hooks and waits for the deletion of the infrastructure machine.
	Terminating bool
}

// runsAs reports whether a Node proves to be that of the Machine's host. That it has the name which the host had does not.
func (m Machine) runsAs(n facts.Node) bool {
	if m.ProviderID != "" && n.ProviderID != "" {
		return m.ProviderID == n.ProviderID
	}
	return m.HostUID != "" && m.HostUID == n.HostUID
}

// Situation is what is decided upon without looking at etcd.
type Situation struct {
	// Machines are those of the control plane, Replicas how many there are to be. Others are those of the Cluster that
	// are not of the control plane, or no more.
	Machines, Others []Machine
	Replicas         int
	// Fenced tells that the cluster is one of two nodes that fence each other: its hosts never leave etcd from here.
	Fenced bool
	// Leftovers are the hosts whose members were removed, or are just being, of which not all is cleaned up.
	Leftovers []Leftover
	// Registered are the Nodes of the cluster, as far as they are known without asking it.
	Registered []facts.Node
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
	// Machine is the one that it is about, Leaves what its host leaves behind, to be recorded before anything is done;
	// without Node and Machine: nothing.
	Machine Machine
	Leaves  Leftover
	// Member is that of its host; To is who is to lead, Via through whom the member is removed.
	Member, To, Via facts.EtcdMember
	// Blocker is what a Wait waits for.
	Blocker decision.Blocker
}

// blocked is the step of who waits.
func blocked(by decision.Blocker) Step { return Step{Action: Wait, Blocker: by} }

// about is the step for a Machine.
func (s Step) about(m Machine) Step {
	s.Machine = m
	return s
}

// Blocks returns the Blocker of a Wait with the Machine whose host is not touched.
func (s Step) Blocks() decision.Blocker { return s.Machine.NotTouched(s.Blocker) }

// NotTouched says that the host of the Machine is not touched; of no Machine it says nothing.
func (m Machine) NotTouched(b decision.Blocker) decision.Blocker {
	if m.Name == "" {
		return b
	}
	return b.About("the host of Machine %s is not touched", m.Name)
}

// Lost waits until etcd serves again.
func Lost() decision.Blocker {
	return decision.Wait(controlplanev1.EtcdQuorumAtRiskReason, "etcd does not serve the API server of the cluster, it has most likely lost its quorum. Bring the hosts of its members back; if that cannot be, "+
		"restore etcd as OpenShift documents it. Until then no member is removed")
}

// NotLed waits for a leader that was told to hand over and leads all the same.
func NotLed(step Step) Step {
	return blocked(decision.Wait(controlplanev1.WaitingForEtcdReason, "etcd is led by its member %s, which was told to hand over to %s: waiting until it does",
		nameOf(step.Member), nameOf(step.To))).about(step.Machine)
}

// Fenced waits for somebody else: in a cluster of two nodes with fencing nobody touches etcd from here, whatever it
// looks like. what is not done is said first.
func Fenced(format string, what ...any) decision.Blocker {
	return decision.Watch(controlplanev1.EtcdTopologyNotSupportedReason, "%s: the cluster is one of two nodes with fencing (spec.fencing), whose etcd is run by Pacemaker, and is not changed from here. Replace a host "+
		"that cannot be repaired as OpenShift documents it for two-node clusters with fencing, or delete the Cluster, which wipes its hosts", fmt.Sprintf(format, what...))
}

// fenced is about a Machine of two nodes with fencing. Nothing brings back a Machine whose deletion was asked for, so
// that only its user can tell when its host may be wiped.
func (a *Situation) fenced() *decision.Blocker {
	at := slices.IndexFunc(a.Machines, func(m Machine) bool { return !m.Deleted.IsZero() && m.Held })
	if !a.Fenced || at < 0 {
		return nil
	}
	m := a.Machines[at]
	blocker := Fenced("the host of Machine %s is neither taken out of etcd nor released", m.Name)
	blocker.Message += fmt.Sprintf(". When the cluster certainly does without this host, and the Machine's condition Deleting says that it waits for the hook, take the annotation %s off the Machine: the host is "+
		"wiped then", controlplanev1.EtcdMemberHookAnnotation)
	return &blocker
}

// Due tells which Machines wait for their members to be removed, the oldest deletion first, or what comes before all of
// them. With neither, nothing is to be done.
func (a *Situation) Due() (due []Machine, before *decision.Blocker) {
	if blocker := a.fenced(); blocker != nil {
		return nil, blocker
	}
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() && m.Held && m.Waits {
			due = append(due, m)
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	slices.SortFunc(due, func(m, n Machine) int { return cmp.Or(m.Deleted.Compare(n.Deleted), cmp.Compare(m.Name, n.Name)) })
	if before := a.before(); before != nil {
		first := due[0].NotTouched(*before)
		return nil, &first
	}
	return due, nil
}

// Draining waits for what Cluster API does before our hook; nil: no Machine that is held is on its way to the hook.
func (a *Situation) Draining() *decision.Blocker {
	at := slices.IndexFunc(a.Machines, func(m Machine) bool { return !m.Deleted.IsZero() && m.Held && m.Blocker != "" })
	if at < 0 {
		return nil
	}
	blocker := a.Machines[at].NotTouched(decision.Watch(controlplanev1.WaitingForDrainReason, "%s", a.Machines[at].Blocker))
	return &blocker
}

// before is what has to come to its end before the next host is touched.
func (a *Situation) before() *decision.Blocker {
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() && !m.Held {
			blocker := decision.Watch(controlplanev1.WaitingForMachinesDeletionReason, "Machine %s is being removed, which comes first: see its condition Deleting", m.Name)
			return &blocker
		}
	}
	for _, left := range a.Leftovers {
		// That of a Machine that is still held was recorded before anything was done: whether that was done, etcd tells.
		if !slices.ContainsFunc(a.Machines, func(m Machine) bool { return !m.Deleted.IsZero() && a.isOf(left, m) }) {
			blocker := decision.Watch(controlplanev1.WaitingForMachinesDeletionReason, "what is left of %s, whose host was released before, comes first", left.From())
			return &blocker
		}
	}
	return nil
}

// Decide is the next step for the Machines that are due: for the first that anything can be done for, for each may wait
// for what only the end of another brings.
func (a *Situation) Decide(due []Machine, etcd *facts.Etcd) Step {
	v := view{Situation: a, Etcd: etcd}
	if foreign := v.foreign(); foreign != nil {
		return blocked(*foreign).about(due[0])
	}
	var waits []Step
	for _, m := range v.inOrder(due) {
		step := v.decide(m)
		if step.Action != Wait {
			return step
		}
		waits = append(waits, step)
	}
	return waits[0]
}

// view is all that is decided upon.
type view struct {
	*Situation
	*facts.Etcd
}

// inOrder puts first whose host is certainly no member, then who does not vote yet, then whose member is down:
// OpenShift adds and promotes none while there is one. Of the others the oldest deletion is first. Each is told its
// Node as it is now.
func (v *view) inOrder(due []Machine) []Machine {
	type ranked struct {
		Machine

		rank int
	}
	var machines []ranked
	for _, m := range due {
		m = v.onNode(m)
		own, doubt := v.memberOf(m)
		rank := 3
		switch {
		case doubt != "":
		case own == nil:
			rank = 0
		case own.Learner:
			rank = 1
		case !own.Healthy():
			rank = 2
		}
		machines = append(machines, ranked{m, rank})
	}
	slices.SortStableFunc(machines, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	sorted := make([]Machine, 0, len(due))
	for _, m := range machines {
		sorted = append(sorted, m.Machine)
	}
	return sorted
}

func (v *view) decide(m Machine) Step {
	own, doubt := v.memberOf(m)
	var step Step
	switch {
	case doubt != "":
		step = blocked(decision.Wait(controlplanev1.EtcdUnknownReason, "%s", doubt))
	case own == nil:
		step = Step{Action: Release}
	default:
		step = v.remove(*own)
	}
	step.Machine, step.Leaves = m, v.leaves(m, own)
	return step
}

// foreign is why nothing is decided here: because nothing can be told, or others decide.
func (v *view) foreign() *decision.Blocker {
	var blocker decision.Blocker
	switch {
	case v.Lost:
		blocker = Lost()
	case v.Topology == "":
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "the cluster does not tell the topology of its control plane: see status of Infrastructure cluster")
	case !v.InPods():
		blocker = decision.Watch(controlplanev1.EtcdTopologyNotSupportedReason, "the control plane has the topology %q, whose etcd members are not touched from here: remove its member, if it has one, as "+
			"OpenShift documents it for that topology, then take the annotation %s off the Machine", short(string(v.Topology)), controlplanev1.EtcdMemberHookAnnotation)
	case v.Doubt != "":
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "%s. If it stays so, compare what etcdctl member list says in each Pod with the label app=etcd in namespace openshift-etcd of the cluster", v.Doubt)
	case len(v.Members) == 0:
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "no etcd member answers: see the Pods with the label app=etcd in namespace openshift-etcd of the cluster. If etcd has lost its quorum, "+
			"restore it as OpenShift documents it")
	default:
		return nil
	}
	return &blocker
}
