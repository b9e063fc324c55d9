// Package quorum decides whether the etcd of a cluster permits that a member is removed, or that another host joins. Etcd must keep its
// quorum. No operator may restart members meanwhile. It has no client. An unknown state is never taken as safe.
package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// View is an inspected etcd with the Machines of its cluster.
type View struct {
	*workload.Etcd
	// Machines are the Machines of the control plane, Replicas their desired number. Others are those of the Cluster
	// that do not belong to the control plane, or no longer.
	Machines, Others []Machine
	Replicas         int
}

// Change is the next request to etcd for the removal of a member, or its blocker.
type Change struct {
	// Blocker is nil if the removal may proceed.
	Blocker *decision.Blocker
	// To is the member that becomes the leader before the removal; nil if the leader stays. Via is the member through
	// which the member is removed otherwise.
	To, Via *workload.EtcdMember
}

// blockedChange returns a change that waits.
func blockedChange(by decision.Blocker) Change { return Change{Blocker: &by} }

// Remove returns the next change for the removal of a member from etcd.
func (v *View) Remove(own workload.EtcdMember) Change {
	if against := v.Against(own); len(against) > 0 {
		return blockedChange(against[0])
	}
	return v.lead(own)
}

// Against returns all blockers of the removal of a member, the most serious first.
func (v *View) Against(own workload.EtcdMember) []decision.Blocker {
	var against []decision.Blocker
	for _, check := range []func(workload.EtcdMember) *decision.Blocker{
		v.last, v.operated, v.lost, v.alarmed, v.joining, v.membersWithoutHook, v.quorum, v.settled, v.configured,
	} {
		if blocker := check(own); blocker != nil {
			against = append(against, *blocker)
		}
	}
	return against
}

// last blocks the removal of the only member.
func (v *View) last(own workload.EtcdMember) *decision.Blocker {
	if own.Learner || len(v.Voters()) > 1 {
		return nil
	}
	until := "no single Machine is ever removed from it"
	if v.Replicas > 1 {
		until = "otherwise the Machine waits until other hosts have joined"
	}
	blocker := decision.Wait(
		controlplanev1.LastEtcdMemberReason,
		"its host is the only member of etcd, with all data of the cluster. If the cluster is no longer needed, delete the Cluster, which wipes "+
			"all its hosts; %s",
		until,
	)
	return &blocker
}

// operated blocks in clusters whose etcd operator removes members itself.
func (v *View) operated(own workload.EtcdMember) *decision.Blocker {
	if !v.MachineAPI {
		return nil
	}
	blocker := decision.Wait(
		controlplanev1.WaitingForMachineAPIReason,
		"the cluster's own Machine API runs its control plane, so its etcd operator removes members: delete the Machine of Node %s in "+
			"namespace openshift-machine-api of the cluster, which wipes its host, and see ClusterOperator etcd for what it waits for",
		own.Name,
	)
	return &blocker
}

// quorumOf returns the quorum of a number of voters.
func quorumOf(voters int) int { return voters/2 + 1 }

// lost blocks while etcd has no quorum.
func (v *View) lost(workload.EtcdMember) *decision.Blocker {
	voters := v.Voters()
	healthy := len(voters) - len(down(voters))
	if healthy >= quorumOf(len(voters)) {
		return nil
	}
	blocker := decision.Wait(
		controlplanev1.EtcdQuorumAtRiskReason,
		"etcd has lost its quorum: of %s only %d %s healthy, and it needs %d (%s). Repair their hosts. If that is impossible, restore etcd as "+
			"OpenShift documents it. Until then no member is removed",
		english.Plural(len(voters), "member", ""),
		healthy,
		english.PluralWord(healthy, "is", "are"),
		quorumOf(len(voters)),
		problems(voters),
	)
	return &blocker
}

// joining blocks while a member is joining. A joining member does not block the removal of one that is down:
// OpenShift promotes no member while one is down. If another member is down, that is the blocker to report.
func (v *View) joining(own workload.EtcdMember) *decision.Blocker {
	if own.Learner || len(down(v.Voters())) > 0 {
		return nil
	}
	for _, m := range v.Members {
		if !m.Learner {
			continue
		}
		blocker := decision.Wait(controlplanev1.WaitingForEtcdReason, "etcd member %s is joining: waiting until it votes", NameOf(m))
		if !m.Healthy() {
			blocker.Message += fmt.Sprintf(
				", but it %s. If its host does not come up, delete its Machine, which is then handled first; its host is wiped",
				m.Problem,
			)
		}
		return &blocker
	}
	return nil
}

// membersWithoutHook blocks on members whose Machines are deleted without our hook, because they do not belong to the
// control plane, or no longer.
func (v *View) membersWithoutHook(own workload.EtcdMember) *decision.Blocker {
	if own.Learner || !own.Healthy() {
		return nil
	}
	for _, m := range v.Others {
		if m.Deleted.IsZero() || m.HasHook {
			continue
		}
		for _, member := range v.Voters() {
			node := cmp.Or(member.Name, v.NodeAt(&member))
			at := v.Node(node)
			if m.Node == node || at != nil && m.RunsAs(at.Node) {
				blocker := decision.Wait(
					controlplanev1.WaitingForMachinesDeletionReason,
					"Machine %s, which is not of the control plane, is being deleted, and its host is etcd member %s: no healthy member is removed until "+
						"then. When the host is deleted, remove that member as OpenShift documents it",
					m.Name,
					NameOf(member),
				)
				return &blocker
			}
		}
	}
	return nil
}

// leastReplicas is the smallest control plane that survives the loss of a host. A larger control plane is not
// reduced below its quorum by single deletions.
const leastReplicas = 3

// quorum blocks if too few members would remain. The removal of a member that is down never weakens etcd. A
// healthy member is removed only while all others are healthy, and if enough remain for a quorum of the
// desired control plane.
func (v *View) quorum(own workload.EtcdMember) *decision.Blocker {
	others := slices.DeleteFunc(v.Voters(), func(m workload.EtcdMember) bool { return m.ID == own.ID })
	healthy := len(others) - len(down(others))
	wanted := max(v.Replicas, leastReplicas)
	var blocker decision.Blocker
	switch {
	case healthy < quorumOf(len(others)):
		blocker = decision.Wait(controlplanev1.EtcdQuorumAtRiskReason, "without it etcd would have no quorum: of %s only %d %s healthy (%s). %s",
			english.Plural(len(others), "other member", ""), healthy, english.PluralWord(healthy, "is", "are"), problems(others), v.remedy(others))
	case own.Learner || !own.Healthy():
		return nil
	case healthy < len(others):
		blocker = decision.Wait(
			controlplanev1.EtcdQuorumAtRiskReason,
			"a healthy etcd member is removed only while all others are healthy: %s. %s",
			problems(others),
			v.remedy(others),
		)
	case len(others) < quorumOf(wanted):
		blocker = decision.Wait(
			controlplanev1.WaitingForReplacementReason,
			"%s would be left, of at least %d that a control plane of %d Machines needs: waiting until another host has joined",
			english.Plural(len(others), "etcd member", ""),
			quorumOf(wanted),
			wanted,
		)
	default:
		return nil
	}
	return &blocker
}

// remedy returns the action for the members that are down.
func (v *View) remedy(members []workload.EtcdMember) string {
	for _, member := range down(members) {
		node := cmp.Or(member.Name, v.NodeAt(&member))
		at := slices.IndexFunc(v.Machines, func(m Machine) bool { return node != "" && m.Node == node && !m.Deleted.IsZero() })
		switch {
		case at < 0:
		case v.Machines[at].Blocker != "":
			return fmt.Sprintf(
				"Machine %s of Node %s is being deleted and is handled first: %s",
				v.Machines[at].Name,
				Shorten(node),
				v.Machines[at].Blocker,
			)
		default:
			return fmt.Sprintf(
				"Machine %s of Node %s is being deleted and is handled first: see its condition Deleting",
				v.Machines[at].Name,
				Shorten(node),
			)
		}
	}
	return "Repair its host, or delete its Machine, which is then handled first; its host is wiped"
}

// lead moves the leadership to another member before the leader is removed, and removes a member through the
// leader. A leader that does not answer here may still lead. Another member then forwards the request, even
// for the removal of the leader.
func (v *View) lead(own workload.EtcdMember) Change {
	at := slices.IndexFunc(v.Members, func(m workload.EtcdMember) bool { return m.Leader })
	newLeaders := v.newLeaders(own)
	switch {
	case at < 0:
		return blockedChange(
			decision.Wait(
				controlplanev1.EtcdUnknownReason,
				"the etcd members do not agree on who leads: waiting for an election, which takes seconds. If the state persists, see the logs of the "+
					"Pods with the label app=etcd in namespace openshift-etcd of the cluster, and the network between their hosts",
			),
		)
	case len(newLeaders) == 0:
		return blockedChange(decision.Wait(controlplanev1.EtcdQuorumAtRiskReason, "no other etcd member can become the leader: repair the hosts "+
			"of the other members"))
	case v.Members[at].ID == own.ID && own.Healthy():
		return Change{To: &newLeaders[0]}
	case v.Members[at].ID != own.ID && v.Members[at].Healthy():
		return Change{Via: &v.Members[at]}
	}
	return Change{Via: &newLeaders[0]}
}

// newLeaders returns the members that can lead instead of a member. Those that are removed next come last.
func (v *View) newLeaders(own workload.EtcdMember) []workload.EtcdMember {
	newLeaders := slices.DeleteFunc(v.Voters(), func(m workload.EtcdMember) bool { return m.ID == own.ID || !m.Healthy() })
	slices.SortStableFunc(newLeaders, func(a, b workload.EtcdMember) int {
		return cmp.Or(cmp.Compare(v.isDeleting(a.Name), v.isDeleting(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return newLeaders
}

// isDeleting returns 1 if the Machine of a Node is being deleted, else 0.
func (v *View) isDeleting(node string) int {
	for _, m := range v.Machines {
		if m.Node == node && !m.Deleted.IsZero() {
			return 1
		}
	}
	return 0
}

// NameOf returns the name of a member for messages.
func NameOf(m workload.EtcdMember) string {
	return cmp.Or(Shorten(m.Name), fmt.Sprintf("%x (not started, %s)", m.ID, Shorten(strings.Join(m.Hosts, ", "))))
}

// down returns the unhealthy members.
func down(members []workload.EtcdMember) []workload.EtcdMember {
	return slices.DeleteFunc(slices.Clone(members), workload.EtcdMember.Healthy)
}

// problems lists the unhealthy members and their problems.
func problems(members []workload.EtcdMember) string {
	var described []string
	for _, m := range down(members) {
		described = append(described, NameOf(m)+" "+m.Problem)
	}
	return bound.List(described)
}

// longest bounds texts from a cluster in a message, in bytes.
const longest = 100

// Shorten returns the beginning of a text from a cluster.
func Shorten(text string) string {
	return bound.Shorten(text, longest)
}
