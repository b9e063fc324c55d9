// Package removal decides the steps before the host of a control-plane Machine may be deleted. First etcd
// must keep its quorum (package quorum), and must not keep the host as a member. This package finds the member of a
// host, and the order of the hosts. It has no client. An unknown state is never taken as safe.
package removal

import (
	"cmp"
	"fmt"
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Situation holds the data for decisions that do not depend on etcd.
type Situation struct {
	// Machines are the Machines of the control plane, Replicas their desired number. Others are those of the
	// Cluster that do not belong to the control plane, or no longer.
	Machines, Others []quorum.Machine
	Replicas         int
	// Fenced is true for a two-node cluster with fencing: this provider never removes its hosts from etcd.
	Fenced bool
	// ReleasedHosts are the hosts whose members were removed, or are being removed, and whose clean-up is not
	// complete.
	ReleasedHosts []ReleasedHost
	// Registered are the known Nodes of the cluster, without a request to it.
	Registered []workload.Node
}

// Action is the next action.
type Action string

// The actions.
const (
	// Wait waits for the Blocker of the step.
	Wait Action = "wait"
	// MoveLeader moves the leadership to another member.
	MoveLeader Action = "move the leader"
	// RemoveMember removes the member from etcd.
	RemoveMember Action = "remove the member"
	// Release removes the hook of the Machine: its host is no member of etcd.
	Release Action = "release"
)

// Step is the next step of a removal.
type Step struct {
	Action Action
	// Machine is the Machine of the step. Leaves is the record of its host, which is written before the step;
	// without Node and Machine it is empty.
	Machine quorum.Machine
	Leaves  ReleasedHost
	// Member is the member of its host. To is the next leader. Via is the member through which the member is
	// removed.
	Member, To, Via workload.EtcdMember
	// Blocker is the blocker of a Wait.
	Blocker decision.Blocker
}

// blocked returns a step that waits.
func blocked(by decision.Blocker) Step { return Step{Action: Wait, Blocker: by} }

// about returns the step with its Machine.
func (s Step) about(m quorum.Machine) Step {
	s.Machine = m
	return s
}

// Blocks returns the Blocker of a Wait with the Machine whose host is not touched.
func (s Step) Blocks() decision.Blocker { return s.Machine.NotTouched(s.Blocker) }

// NotLed waits for a leader that was requested to move the leadership and still leads.
func NotLed(step Step) Step {
	return blocked(
		decision.Wait(
			controlplanev1.WaitingForEtcdReason,
			"etcd is led by its member %s, which was requested to hand over to %s: waiting until it does",
			quorum.NameOf(step.Member),
			quorum.NameOf(step.To),
		),
	).about(step.Machine)
}

// Fenced returns the blocker for a two-node cluster with fencing, in which this provider never changes etcd.
// The text starts with the operation that is not done.
func Fenced(format string, what ...any) decision.Blocker {
	return decision.Watch(
		controlplanev1.EtcdTopologyNotSupportedReason,
		"%s: the cluster is one of two nodes with fencing (spec.fencing), whose etcd is managed by Pacemaker, and the provider does not change "+
			"it. Replace a host that cannot be repaired as OpenShift documents it for two-node clusters with fencing, or delete the Cluster, which "+
			"wipes its hosts",
		fmt.Sprintf(format, what...),
	)
}

// fenced blocks the deletion of a Machine of a two-node cluster with fencing. A requested deletion cannot be
// reverted, so that only the user can decide when the host may be wiped.
func (a *Situation) fenced() *decision.Blocker {
	at := slices.IndexFunc(a.Machines, func(m quorum.Machine) bool { return !m.Deleted.IsZero() && m.HasHook })
	if !a.Fenced || at < 0 {
		return nil
	}
	m := a.Machines[at]
	blocker := Fenced("the host of Machine %s is neither removed from etcd nor released", m.Name)
	blocker.Message += fmt.Sprintf(
		". If the cluster certainly does not need this host, and the condition Deleting of the Machine shows that it waits for the hook, remove "+
			"the annotation %s from the Machine: the host is then wiped",
		controlplanev1.EtcdMemberHookAnnotation,
	)
	return &blocker
}

// Due returns the Machines that wait for the removal of their members, the oldest deletion first, or a
// blocker of all of them. Without both there is nothing to do.
func (a *Situation) Due() (due []quorum.Machine, before *decision.Blocker) {
	if blocker := a.fenced(); blocker != nil {
		return nil, blocker
	}
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() && m.HasHook && m.Waits {
			due = append(due, m)
		}
	}
	if len(due) == 0 {
		return nil, nil
	}
	slices.SortFunc(due, func(m, n quorum.Machine) int {
		return cmp.Or(m.Deleted.Compare(n.Deleted), cmp.Compare(m.Name, n.Name))
	})
	if before := a.before(); before != nil {
		first := due[0].NotTouched(*before)
		return nil, &first
	}
	return due, nil
}

// Draining returns what Cluster API waits for before our hook; nil if no Machine with our hook is on its way
// to the hook.
func (a *Situation) Draining() *decision.Blocker {
	at := slices.IndexFunc(a.Machines, func(m quorum.Machine) bool { return !m.Deleted.IsZero() && m.HasHook && m.Blocker != "" })
	if at < 0 {
		return nil
	}
	blocker := a.Machines[at].NotTouched(decision.Watch(controlplanev1.WaitingForDrainReason, "%s", a.Machines[at].Blocker))
	return &blocker
}

// before returns what has to end before the next host is touched.
func (a *Situation) before() *decision.Blocker {
	for _, m := range a.Machines {
		if !m.Deleted.IsZero() && !m.HasHook {
			blocker := decision.Watch(
				controlplanev1.WaitingForMachinesDeletionReason,
				"Machine %s is being removed and is handled first: see its condition Deleting",
				m.Name,
			)
			return &blocker
		}
	}
	for _, left := range a.ReleasedHosts {
		// The record of a Machine with our hook was written before the removal. etcd shows whether its member was removed.
		if !a.hasDeletingMachine(left) {
			blocker := decision.Watch(
				controlplanev1.WaitingForMachinesDeletionReason,
				"what is left of %s, whose host was released before, is handled first",
				left.Origin(),
			)
			return &blocker
		}
	}
	return nil
}

// Decide returns the next step for the due Machines: for the first one that can proceed, because each may
// wait for the end of another.
func (a *Situation) Decide(due []quorum.Machine, etcd *workload.Etcd) Step {
	v := view{Situation: a, Etcd: etcd}
	if foreign := quorum.Unclear(v.Etcd); foreign != nil {
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

// view holds all data for decisions.
type view struct {
	*Situation
	*workload.Etcd
}

// quorum returns the data for decisions about the members of etcd.
func (v *view) quorum() *quorum.View {
	return &quorum.View{Etcd: v.Etcd, Machines: v.Machines, Others: v.Others, Replicas: v.Replicas}
}

// remove returns the next step to remove a member from etcd.
func (v *view) remove(own workload.EtcdMember) Step {
	step, change := Step{Action: RemoveMember, Member: own}, v.quorum().Remove(own)
	switch {
	case change.Blocker != nil:
		step.Action, step.Blocker = Wait, *change.Blocker
	case change.To != nil:
		step.Action, step.To = MoveLeader, *change.To
	default:
		step.Via = *change.Via
	}
	return step
}

// inOrder sorts Machines. First are hosts that are certainly no member, then members that do not vote yet,
// then members that are down. OpenShift adds and promotes no member while one is down. The others are sorted
// by the time of their deletion. Each Machine gets its current Node.
func (v *view) inOrder(due []quorum.Machine) []quorum.Machine {
	type ranked struct {
		quorum.Machine

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
	sorted := make([]quorum.Machine, 0, len(due))
	for _, m := range machines {
		sorted = append(sorted, m.Machine)
	}
	return sorted
}

func (v *view) decide(m quorum.Machine) Step {
	own, doubt := v.memberOf(m)
	var step Step
	switch {
	case doubt != "":
		step = blocked(decision.Wait(controlplanev1.EtcdHostNotIdentifiedReason, "%s", doubt))
	case own == nil:
		step = Step{Action: Release}
	default:
		step = v.remove(*own)
	}
	step.Machine, step.Leaves = m, v.leaves(m, own)
	return step
}
