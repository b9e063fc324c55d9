package removal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a healthy control plane with leader n0. Its Machine m0 is being deleted and waits at our hook.
type world struct {
	Situation
	workload.Etcd
}

func newWorld(hosts int) *world {
	w := &world{Situation: Situation{Replicas: hosts}, Etcd: workload.Etcd{
		Topology:       configv1.HighlyAvailableTopologyMode,
		Operators:      []workload.ClusterOperator{{Name: "etcd", Available: true}, {Name: "kube-apiserver", Available: true}},
		LatestRevision: 7,
	}}
	for i := range hosts {
		w.join(i)
	}
	w.Members[0].Leader = true
	w.delete(0, noon)
	return w
}

func node(i int) string { return fmt.Sprintf("n%d", i) }

func address(i int) string { return fmt.Sprintf("192.168.111.2%d", i) }

// join adds a host that is a member.
func (w *world) join(i int) {
	w.Machines = append(
		w.Machines,
		quorum.Machine{
			Name: fmt.Sprintf("m%d", i), Node: node(i), ProviderID: "metal3://" + node(i),
			HostUID: "host of " + node(i), HasHook: true,
		},
	)
	w.Members = append(w.Members, workload.EtcdMember{ID: uint64(i + 1), Name: node(i), Hosts: []string{address(i)}})
	w.Nodes = append(w.Nodes, workload.ControlPlaneNode{
		Node: workload.Node{
			Name:       node(i),
			UID:        types.UID(node(i)),
			ProviderID: "metal3://" + node(i),
			HostUID:    "host of " + node(i),
		},
		Addresses: []string{address(i)},
	})
	w.Revisions = append(w.Revisions, workload.Revision{Node: node(i), Current: 7})
}

// spare adds a Machine that is being deleted, whose host never booted.
func (w *world) spare(at time.Time) {
	w.Machines = append(w.Machines, quorum.Machine{Name: fmt.Sprintf("m%d", len(w.Machines)), HasHook: true})
	w.delete(len(w.Machines)-1, at)
}

func (w *world) delete(i int, at time.Time) { w.Machines[i].Deleted, w.Machines[i].Waits = at, true }

// fail makes a member unreachable.
func (w *world) fail(i int) {
	w.Members[i].Problem = "does not answer"
	if w.Members[i].Leader {
		w.Members[i].Leader, w.Members[(i+1)%len(w.Members)].Leader = false, true
	}
	w.Operators[0].Degraded, w.Operators[1].Degraded = true, true
}

// drop removes a host with all its objects.
func (w *world) drop(i int) {
	w.Machines, w.Members = slices.Delete(w.Machines, i, i+1), slices.Delete(w.Members, i, i+1)
	w.Nodes, w.Revisions = slices.Delete(w.Nodes, i, i+1), slices.Delete(w.Revisions, i, i+1)
}

// leads makes a member the leader.
func leads(i int) func(*world) {
	return func(w *world) {
		for j := range w.Members {
			w.Members[j].Leader = i == j
		}
	}
}

// stray removes a Machine from the control plane, and deletes it.
func (w *world) stray(i int) {
	m := w.Machines[i]
	m.HasHook, m.Deleted, m.HostUID = false, noon, ""
	w.Machines, w.Others = slices.Delete(w.Machines, i, i+1), append(w.Others, m)
}

// alarm raises an alarm.
func alarm(kind string, member uint64) func(*world) {
	return func(w *world) { w.Alarms = append(w.Alarms, workload.EtcdAlarm{Kind: kind, Member: member}) }
}

// restored makes a host the only member, as the restore of a backup does. The Nodes of the others still
// exist.
func (w *world) restored(i int) {
	w.Members = []workload.EtcdMember{w.Members[i]}
	w.Members[0].Leader = true
}

func all(changes ...func(*world)) func(*world) {
	return func(w *world) {
		for _, change := range changes {
			change(w)
		}
	}
}

func (w *world) step() Step {
	due, before := w.Due()
	switch {
	case before != nil:
		return blocked(*before)
	case len(due) == 0:
		return Step{}
	}
	return w.Decide(due, &w.Etcd)
}

func TestNextStep(t *testing.T) {
	for situation, tc := range map[string]struct {
		hosts  int
		change func(w *world)
		// action is followed by the expected Machine and members.
		action          Action
		machine, member string
		to, via         string
		reason, message string
	}{
		"no Machine is deleted: nothing": {change: func(w *world) { w.Machines[0].Deleted = time.Time{} }},
		"it is drained: nothing yet":     {change: func(w *world) { w.Machines[0].Waits = false }},
		"it has not our hook: nothing": {change: func(w *world) {
			w.Machines[0].HasHook = false
		}},
		"the leader is the one to go: another leads first": {action: MoveLeader, machine: "m0", member: "n0", to: "n1"},
		"the leader goes, and the next would go too: the third leads": {
			change: func(w *world) { w.delete(1, noon.Add(time.Minute)) }, action: MoveLeader, machine: "m0", member: "n0", to: "n2",
		},
		"a healthy member goes": {change: leads(1), action: RemoveMember, machine: "m0", member: "n0", via: "n1"},
		"one of five goes":      {hosts: 5, change: leads(3), action: RemoveMember, machine: "m0", member: "n0", via: "n3"},
		"one of four goes, as three are wanted": {
			hosts: 4, change: all(leads(1), func(w *world) { w.Replicas = 3 }), action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"it is removed already: released": {
			change: all(leads(1), func(w *world) { w.Members = w.Members[1:] }), action: Release, machine: "m0",
		},
		"it is removed already, and operators roll out: released all the same": {
			change: all(leads(1), func(w *world) { w.Members, w.Operators[0].Progressing = w.Members[1:], true }), action: Release, machine: "m0",
		},
		"its host never became a Node: released": {
			change: all(leads(1), func(w *world) {
				w.Machines[0].Node, w.Machines[0].ProviderID, w.Members, w.Nodes = "", "", w.Members[1:], w.Nodes[1:]
			}), action: Release, machine: "m0",
		},
		"two masters are deleted at once: the older first": {
			change:  all(leads(2), func(w *world) { w.delete(1, noon.Add(-time.Second)) }),
			action:  RemoveMember,
			machine: "m1",
			member:  "n1",
			via:     "n2",
		},
		"two masters are deleted at once, the first is on its way out: the second waits": {
			change: all(leads(2), func(w *world) {
				w.delete(1, noon.Add(time.Second))
				w.Machines[0].HasHook = false
				w.Members = w.Members[1:]
			}),
			action: Wait, machine: "m1", reason: controlplanev1.WaitingForMachinesDeletionReason, message: "Machine m0 is being removed",
		},
		"one was released, and is not cleaned up: the next waits": {
			change: all(leads(1), func(w *world) { w.ReleasedHosts = []ReleasedHost{{Node: "n9"}} }),
			action: Wait, machine: "m0", reason: controlplanev1.WaitingForMachinesDeletionReason, message: "Node n9",
		},
		"one was recorded, and its Machine lives: the next waits": {
			change: all(leads(1), func(w *world) { w.ReleasedHosts = []ReleasedHost{{Node: "n1", UID: "n1"}} }),
			action: Wait, machine: "m0", reason: controlplanev1.WaitingForMachinesDeletionReason, message: "what is left of Node n1",
		},
		"it was about to be released: it comes first": {
			change: all(leads(2), func(w *world) {
				w.delete(1, noon.Add(time.Hour))
				w.ReleasedHosts = []ReleasedHost{{Node: "n1"}}
				w.Members = slices.Delete(w.Members, 1, 2)
			}),
			action: Release, machine: "m1",
		},
		"two masters are deleted at once, the first is removed: the second waits for another": {
			change:  all(leads(2), func(w *world) { w.delete(1, noon); w.drop(0) }),
			action:  Wait,
			machine: "m1",
			member:  "n1",
			reason:  controlplanev1.WaitingForReplacementReason,
			message: "1 etcd member would be left, of at least 2",
		},
		"a control plane of five is not taken below three": {
			hosts: 3, change: all(leads(1), func(w *world) { w.Replicas = 5 }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForReplacementReason,
			message: "2 etcd members would be left, of at least 3",
		},
		"a control plane of three is not reduced to one": {
			hosts: 2, change: all(leads(1), func(w *world) { w.Replicas = 1 }),
			action: Wait, machine: "m0", member: "n0", reason: controlplanev1.WaitingForReplacementReason, message: "of at least 2",
		},
		"its own host is away: removed through another": {
			change: func(w *world) { w.fail(0) }, action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"its own host is away, where a revision was to be rolled out": {
			change: func(w *world) {
				w.fail(0)
				w.Revisions[0].Target, w.Revisions[1].Current, w.Revisions[2].Current = 7, 6, 6
				w.Operators[0].Progressing = true
			}, action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"its own host is away, while another is being restarted: waits": {
			change:  func(w *world) { w.fail(0); w.Revisions[1].Target = 8 },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "Node n1",
		},
		"its own host is away, and its Node deleted": {
			change: func(w *world) { w.fail(0); w.Nodes = w.Nodes[1:] }, action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"another host is away: waits": {
			change:  all(leads(2), func(w *world) { w.fail(1) }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "of 2 other members only 1 is healthy (n1 does not answer)",
		},
		"another of five is away: waits": {
			hosts:   5,
			change:  all(leads(2), func(w *world) { w.fail(1) }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "only while all others are healthy",
		},
		"another is deleted later, and its host is away: that goes first": {
			change:  all(leads(2), func(w *world) { w.fail(1); w.delete(1, noon.Add(time.Hour)) }),
			action:  RemoveMember,
			machine: "m1",
			member:  "n1",
			via:     "n2",
		},
		"two of three are away: nothing": {
			change: func(w *world) { w.fail(1); w.fail(0); w.Members[2].Leader = false }, action: Wait, machine: "m0", member: "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "of 3 members only 1 is healthy, and it needs 2 (n0 does not answer, n1 does not answer)",
		},
		"two of five are away, and deleted: one after the other": {
			hosts: 5, change: func(w *world) { w.fail(0); w.fail(1); w.delete(1, noon) },
			action: RemoveMember, machine: "m0", member: "n0", via: "n2",
		},
		"three of five are away: nothing": {
			hosts:   5,
			change:  func(w *world) { w.fail(2); w.fail(1); w.fail(0) },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "of 5 members only 2 are healthy, and it needs 3 (n0 does not answer, n1 does not answer, n2 does not answer)",
		},
		"two of four are away: nothing, though those left were a quorum of three": {
			hosts: 4, change: func(w *world) { w.fail(1); w.fail(0); w.Members[1].Leader, w.Members[2].Leader = false, true },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "of 4 members only 2 are healthy, and it needs 3",
		},
		"one of two is away: nothing": {
			hosts: 2, change: func(w *world) { w.fail(0) }, action: Wait, machine: "m0", member: "n0", reason: controlplanev1.EtcdQuorumAtRiskReason,
		},
		"another joins: waits": {
			hosts:   4,
			change:  all(leads(1), func(w *world) { w.Members[3].Learner = true }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "n3 is joining: waiting until it votes",
		},
		"another was added and not started: waits": {
			hosts: 4, change: all(leads(1), func(w *world) {
				w.Members[3].Learner, w.Members[3].Name, w.Members[3].Problem = true, "", "does not answer"
			}), action: Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "not started, 192.168.111.23) is joining: waiting until it votes, but it does not answer. If its host does not come up, " +
				"delete its Machine",
		},
		"it is a learner itself: removed": {
			change: all(leads(1), func(w *world) {
				w.Members[0].Learner, w.Operators[0].Progressing, w.Revisions[1].Current = true, true, 6
			}), action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"it is a learner itself that was not started: removed by its address": {
			change: all(leads(1), func(w *world) {
				w.Members[0].Learner, w.Members[0].Name, w.Members[0].Problem = true, "", "does not answer"
			}), action: RemoveMember, machine: "m0", member: "", via: "n1",
		},
		"a revision is rolled out: waits": {
			change:  all(leads(1), func(w *world) { w.Revisions[2].Current = 6 }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "revision 7, which Node n2",
		},
		"a revision begins to be rolled out: waits": {
			change:  all(leads(1), func(w *world) { w.Revisions[2].Target = 7 }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
		},
		"unknown revisions: waits": {
			change:  all(leads(1), func(w *world) { w.Revisions = nil }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdUnknownReason,
		},
		"etcd's operator progresses: waits": {
			change:  all(leads(1), func(w *world) { w.Operators[0].Progressing = true }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "etcd is progressing",
		},
		"another host is to be restarted with another configuration: waits": {
			change:  all(leads(1), func(w *world) { w.Nodes[2].Configuring = true }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "Node n2 gets another machine configuration",
		},
		"its own host is restarted with another configuration: removed": {
			change: all(leads(1), func(w *world) { w.Nodes[0].Configuring = true }), action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"it is down, and another host is restarted with another configuration: removed": {
			change:  all(leads(1), func(w *world) { w.fail(0); w.Nodes[2].Configuring = true }),
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"that of the API server is degraded: waits": {
			change:  all(leads(1), func(w *world) { w.Operators[1].Degraded = true }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "kube-apiserver is degraded",
		},
		"it is not available, and the host is away: waits": {
			change:  func(w *world) { w.fail(0); w.Operators[1].Available = false },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "not available",
		},
		"there is no such operator: waits": {
			change:  all(leads(1), func(w *world) { w.Operators = w.Operators[1:] }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdUnknownReason,
			message: "no ClusterOperator etcd",
		},
		"the members do not agree: waits": {
			change:  func(w *world) { w.Doubt, w.Members = "they do not agree", nil },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdUnknownReason,
			message: "they do not agree",
		},
		"no member answers: waits": {
			change:  func(w *world) { w.Members = nil },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdUnknownReason,
			message: "no etcd member answers",
		},
		"no leader: waits": {
			change:  func(w *world) { w.Members[0].Leader = false },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdUnknownReason,
			message: "who leads",
		},
		"it leads, and cannot be reached from here: removed through another": {
			change:  all(leads(0), func(w *world) { w.Members[0].Problem = "does not answer" }),
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"it cannot be reached, nor can the leader, of five: removed through one that can": {
			hosts: 5, change: all(leads(1), func(w *world) { w.Members[0].Problem, w.Members[1].Problem = "does not answer", "does not answer" }),
			action: RemoveMember, machine: "m0", member: "n0", via: "n2",
		},
		"two spares are deleted, and the next member waits: spares go": {
			hosts: 2, change: all(leads(1), func(w *world) { w.Replicas = 3; w.spare(noon.Add(time.Hour)) }), action: Release, machine: "m2",
		},
		"a spare is deleted that has been given a host": {
			change: all(leads(1), func(w *world) {
				w.Machines[0].Deleted = time.Time{}
				w.spare(noon)
				w.Machines[3].ProviderID, w.Machines[3].HostUID = "metal3://n3", "host of n3"
			}), action: Release, machine: "m3",
		},
		"a learner that never votes is deleted, for which another waits: the learner goes": {
			hosts: 4, change: all(leads(1), func(w *world) {
				w.Members[3].Learner, w.Members[3].Problem = true, "does not answer"
				w.delete(3, noon.Add(time.Hour))
			}), action: RemoveMember, machine: "m3", member: "n3", via: "n1",
		},
		"its host is away, and another is a learner: removed, because no member is promoted meanwhile": {
			hosts:   4,
			change:  func(w *world) { w.fail(0); w.Members[3].Learner = true },
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"a spare is deleted later, and both could go: the spare first": {
			hosts: 4, change: all(leads(1), func(w *world) { w.Replicas = 3; w.spare(noon.Add(time.Hour)) }), action: Release, machine: "m4",
		},
		"a learner is deleted later, and both could go: the learner first": {
			hosts:   4,
			change:  func(w *world) { w.fail(0); w.Members[3].Learner = true; w.delete(3, noon.Add(time.Hour)) },
			action:  RemoveMember,
			machine: "m3",
			member:  "n3",
			via:     "n1",
		},
		"one that is down is deleted later, and both wait: for what that waits": {
			change: all(leads(2), func(w *world) { w.fail(1); w.delete(1, noon.Add(time.Hour)); w.Revisions[2].Current = 6 }),
			action: Wait, machine: "m1", member: "n1", reason: controlplanev1.WaitingForEtcdReason, message: "Node n2",
		},
		"the owner of a member is unknown: the next is removed": {
			change: all(leads(2), func(w *world) {
				w.delete(1, noon.Add(time.Hour))
				w.Nodes[0].ProviderID = "metal3://other"
			}), action: RemoveMember, machine: "m1", member: "n1", via: "n2",
		},
		"it was about to be released, was added again, and another is away: that goes first": {
			change: all(leads(2), func(w *world) {
				w.fail(1)
				w.delete(1, noon.Add(time.Hour))
				w.ReleasedHosts = []ReleasedHost{{Node: "n0"}}
			}), action: RemoveMember, machine: "m1", member: "n1", via: "n2",
		},
		"another joins, but one is down, so that none is promoted: reports the one that is down": {
			hosts: 4, change: all(leads(1), func(w *world) { w.Members[3].Learner = true; w.Members[2].Problem = "does not answer" }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "of 2 other members only 1 is healthy (n2 does not answer)",
		},
		"so it is where those left are a quorum": {
			hosts: 6, change: all(leads(1), func(w *world) { w.Members[5].Learner = true; w.Members[4].Problem = "does not answer" }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "n4 does not answer. Repair its host, or delete its Machine",
		},
		"etcd is full: a healthy member stays": {
			change:  all(leads(1), alarm(workload.EtcdNoSpace, 2)),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdAlarmReason,
			message: "etcdctl defrag",
		},
		"etcd is full, and its host is away: removed": {
			change: all(func(w *world) { w.fail(0) }, alarm(workload.EtcdNoSpace, 2)), action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"etcd is full, and it is a learner: removed": {
			change:  all(leads(1), func(w *world) { w.Members[0].Learner = true }, alarm(workload.EtcdNoSpace, 2)),
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"etcd is full, and its host is no member: released": {
			change: all(leads(1), func(w *world) { w.Members = w.Members[1:] }, alarm(workload.EtcdNoSpace, 2)), action: Release, machine: "m0",
		},
		"it holds other data than the others: it is the one to go": {
			change: all(leads(1), alarm(workload.EtcdCorrupt, 1)), action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"another holds other data: that has to go": {
			change: all(leads(1), alarm(workload.EtcdCorrupt, 2)),
			action: Wait, machine: "m0", member: "n0", reason: controlplanev1.EtcdAlarmReason,
			message: "its member n1 has other data than the others. Delete its Machine, which is then handled first and whose host is wiped: see " +
				"etcdctl alarm list",
		},
		"another holds other data, and is deleted later: it goes": {
			change:  all(leads(2), alarm(workload.EtcdCorrupt, 2), func(w *world) { w.delete(1, noon.Add(time.Hour)) }),
			action:  RemoveMember,
			machine: "m1",
			member:  "n1",
			via:     "n2",
		},
		"another holds other data, and its own host is away, which may have the right ones: waits": {
			change:  all(func(w *world) { w.fail(0) }, alarm(workload.EtcdCorrupt, 2)),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdAlarmReason,
			message: "n1 has other data",
		},
		"members hold different data, the right ones are unknown: waits": {
			change:  all(leads(1), alarm(workload.EtcdCorrupt, 0)),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdAlarmReason,
			message: "does not know which data are right",
		},
		"the one that held other data is removed, its alarm is not: waits": {
			change:  all(leads(1), alarm(workload.EtcdCorrupt, 0x99)),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdAlarmReason,
			message: "about 99, which is no member any more: see",
		},
		"etcd has an unknown alarm: waits": {
			change:  all(leads(1), alarm("FIRE", 1)),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdAlarmReason,
			message: "etcd has the alarm FIRE",
		},
		"its own host is away, and it was the one with other data: removed": {
			change: all(func(w *world) { w.fail(0) }, alarm(workload.EtcdCorrupt, 1)), action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"a Machine that is not of the control plane goes, and its host is a member: waits": {
			change:  all(leads(1), func(w *world) { w.stray(2) }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForMachinesDeletionReason,
			message: "Machine m2, which is not of the control plane, is being deleted, and its host is etcd member n2",
		},
		"the same, found only by its providerID": {
			change:  all(leads(1), func(w *world) { w.stray(2); w.Others[0].Node = "" }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForMachinesDeletionReason,
		},
		"the same, found only by the name of its Node": {
			change:  all(leads(1), func(w *world) { w.stray(2); w.Others[0].ProviderID = "" }),
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForMachinesDeletionReason,
		},
		"so it does, but the host that is due is away: removed": {
			change: func(w *world) { w.fail(0); w.stray(2) }, action: RemoveMember, machine: "m0", member: "n0", via: "n1",
		},
		"so it does, but it is held: removed": {
			change:  all(leads(1), func(w *world) { w.stray(2); w.Others[0].HasHook = true }),
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"so it lives: removed": {
			change:  all(leads(1), func(w *world) { w.stray(2); w.Others[0].Deleted = time.Time{} }),
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"a worker goes: removed": {
			change:  all(leads(1), func(w *world) { w.Others = []quorum.Machine{{Name: "w0", Node: "w0", Deleted: noon}} }),
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n1",
		},
		"etcd was restored, with one member, and a lost host is deleted: released": {
			change: func(w *world) { w.restored(2) }, action: Release, machine: "m0",
		},
		"etcd was restored, and both lost hosts are deleted: one after the other": {
			change: func(w *world) { w.restored(2); w.delete(1, noon.Add(-time.Hour)) }, action: Release, machine: "m1",
		},
		"etcd was restored, and its only host is deleted: it stays": {
			change: func(w *world) {
				w.restored(2)
				w.Machines[0].Deleted = time.Time{}
				w.delete(2, noon)
			}, action: Wait,
			machine: "m2",
			member:  "n2",
			reason:  controlplanev1.LastEtcdMemberReason,
			message: "the Machine waits until other hosts have joined",
		},
		"etcd was restored, and all hosts are deleted: the lost ones go": {
			change:  func(w *world) { w.restored(2); w.delete(2, noon.Add(-time.Hour)); w.delete(1, noon.Add(time.Hour)) },
			action:  Release,
			machine: "m0",
		},
		"etcd was restored, and the first replacement joins: its only voter stays": {
			hosts: 4, change: func(w *world) {
				w.restored(2)
				w.Members = append(w.Members, workload.EtcdMember{ID: 4, Name: "n3", Hosts: []string{address(3)}, Learner: true})
				w.Machines[0].Deleted = time.Time{}
				w.delete(2, noon)
			}, action: Wait, machine: "m2", member: "n2", reason: controlplanev1.LastEtcdMemberReason,
		},
		"etcd was restored, and a lost host reports other members: waits": {
			change:  func(w *world) { w.restored(2); w.Doubt, w.Members = "they do not agree", nil },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdUnknownReason,
			message: "they do not agree",
		},
		"etcd has lost its quorum, and one joins: that it has lost it": {
			hosts: 4, change: func(w *world) {
				w.fail(1)
				w.fail(2)
				w.Members[3].Learner = true
			}, action: Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "has lost its quorum: of 3 members only 1 is healthy, and it needs 2",
		},
		"its kubelet is away, and the others are to be restarted: waits": {
			change:  func(w *world) { w.fail(0); w.Revisions[1].Current = 6 },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForEtcdReason,
			message: "Node n1",
		},
		"it is away, and so is another of five that is behind: removed": {
			hosts:   5,
			change:  func(w *world) { w.fail(0); w.fail(1); w.Revisions[1].Current = 6 },
			action:  RemoveMember,
			machine: "m0",
			member:  "n0",
			via:     "n2",
		},
		"two nodes with fencing: waits in any state of etcd": {
			hosts:   2,
			change:  func(w *world) { w.Fenced, w.Etcd = true, workload.Etcd{Lost: true} },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdTopologyNotSupportedReason,
			message: "neither removed from etcd nor released: the cluster is one of two nodes with fencing",
		},
		"two nodes with fencing, and etcd as on three: waits": {
			change:  func(w *world) { w.Fenced = true },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdTopologyNotSupportedReason,
			message: "remove the annotation",
		},
		"two nodes with fencing, of which one does not come to our hook yet: waits": {
			hosts:   2,
			change:  func(w *world) { w.Fenced, w.Machines[0].Waits = true, false },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdTopologyNotSupportedReason,
		},
		"the topology is unknown: waits": {
			change: func(w *world) { w.Topology = "" }, action: Wait, machine: "m0", reason: controlplanev1.EtcdUnknownReason, message: "topology",
		},
		"two nodes with Pacemaker are not touched": {
			change:  func(w *world) { w.Topology = configv1.DualReplicaTopologyMode },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdTopologyNotSupportedReason,
			message: "DualReplica",
		},
		"one of two masters and an arbiter: another leads first": {
			change: func(w *world) { w.Topology = configv1.HighlyAvailableArbiterMode }, action: MoveLeader, machine: "m0", member: "n0", to: "n1",
		},
		"the arbiter is away, and is to stay: no master goes": {
			change:  func(w *world) { w.Topology = configv1.HighlyAvailableArbiterMode; w.fail(2) },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.EtcdQuorumAtRiskReason,
			message: "n2 does not answer",
		},
		"nor are they when no member of that host is seen": {
			change:  func(w *world) { w.Topology, w.Members = configv1.DualReplicaTopologyMode, w.Members[1:] },
			action:  Wait,
			machine: "m0",
			reason:  controlplanev1.EtcdTopologyNotSupportedReason,
		},
		"a single node stays": {
			hosts:   1,
			change:  func(w *world) { w.Topology = configv1.SingleReplicaTopologyMode },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.LastEtcdMemberReason,
			message: "delete the Cluster",
		},
		"the cluster's Machine API decides: waits for its operator": {
			change:  func(w *world) { w.MachineAPI = true },
			action:  Wait,
			machine: "m0",
			member:  "n0",
			reason:  controlplanev1.WaitingForMachineAPIReason,
			message: "Machine of Node n0",
		},
		"the cluster's Machine API has removed it: released": {
			change: all(leads(1), func(w *world) { w.MachineAPI, w.Members = true, w.Members[1:] }), action: Release, machine: "m0",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(cmp.Or(tc.hosts, 3))
			if tc.change != nil {
				tc.change(w)
			}
			step := w.step()
			g.Expect(step.Action).To(Equal(tc.action), "%s: %s", step.Blocker.Reason, step.Blocker.Message)
			if step.Machine.Name != "" || tc.machine == "" {
				g.Expect(step.Machine.Name).To(Equal(tc.machine))
			} else {
				g.Expect(step.Blocker.Message).To(HavePrefix("the host of Machine %s is ", tc.machine), "what comes first")
				g.Expect(strings.Count(step.Blocker.Message, "the host of Machine")).To(Equal(1), step.Blocker.Message)
			}
			g.Expect(step.Member.Name).To(Equal(tc.member))
			g.Expect(step.To.Name).To(Equal(tc.to))
			g.Expect(step.Via.Name).To(Equal(tc.via))
			g.Expect(step.Blocker.Reason).To(Equal(tc.reason), step.Blocker.Message)
			g.Expect(step.Blocker.Message).To(ContainSubstring(tc.message))
			if step.Action == Wait {
				g.Expect(step.Blocker.Message).NotTo(BeEmpty(), "a wait has a message")
			} else {
				g.Expect(step.Blocker.Message).To(BeEmpty())
			}
		})
	}
}

// The member of a Machine must be certain. A wrong answer removes the member of another host from etcd, or
// wipes a host that is still a member.
func TestMemberOfAMachineIsCertain(t *testing.T) {
	for doubt, tc := range map[string]struct {
		change  func(w *world)
		message string
	}{
		"another Machine has the same Node": {
			func(w *world) { w.Machines[1].Node = "n0" }, "Machine m1 has the same Node, n0",
		},
		"the Node is that of another host by now": {
			func(w *world) { w.Nodes[0].ProviderID = "metal3://other" }, "Node n0 runs on another host",
		},
		"the member has an address that its Node does not have": {
			func(w *world) { w.Members[0].Hosts = []string{"192.168.111.99"} }, "n0 has an address that Node n0 does not have",
		},
		"the member has the address of another Node": {
			func(w *world) { w.Members[0].Hosts = []string{address(1)} }, "n0 has an address that Node n0 does not have",
		},
		"the member of its deleted Node is at another": {
			func(w *world) { w.Members[0].Hosts = []string{address(1)}; w.Nodes = w.Nodes[1:] }, "n0 has an address that Node n0 does not have",
		},
		"a member of another name has the address of the Node": {
			func(w *world) { w.Members[1].Name, w.Members[1].Hosts = "n7", []string{address(0)} }, "n7 has the address of Node n0",
		},
		"a member is named like no Node": {
			func(w *world) { w.Members[1].Name, w.Machines[1].Node = "n7", ""; w.Nodes[1].Name = "x" }, "n7 belongs to no Node",
		},
		"a member without name is at no Node": {
			func(w *world) { w.Members[0].Name, w.Members[0].Hosts = "", []string{"192.168.111.99"} }, "belongs to no Node",
		},
		"the Machine has no Node, but a member has an unknown one": {
			func(w *world) { w.unlinked(0); w.Nodes = w.Nodes[1:] }, "n0 belongs to no Node",
		},
		"the Machine has no Node, and no other proves to have it": {
			func(w *world) { w.unlinked(0); w.Machines[0].ProviderID, w.Machines[0].HostUID = "", "" },
			"etcd member n0 is that of Node n0, which no other Machine proves to be its own",
		},
		"the Machine has no Node, and the host of the Node is unknown": {
			func(w *world) { w.unlinked(0); w.Nodes[0].ProviderID, w.Nodes[0].HostUID = "", "" }, "Node n0, which no other Machine proves",
		},
		"a Node belongs to another Machine only by its name": {
			func(w *world) {
				w.unlinked(0)
				w.Nodes[1].ProviderID, w.Nodes[1].HostUID = "", ""
				w.Nodes, w.Members, w.Revisions = w.Nodes[1:], w.Members[1:], w.Revisions[1:]
			}, "Node n1, which no other Machine proves",
		},
		"a Node of that name has registered without providerID": {
			func(w *world) { w.Nodes[0].ProviderID, w.Nodes[0].HostUID = "", "" }, "Node n0 has no providerID",
		},
		"the host has two Nodes": {
			func(w *world) {
				w.Nodes[1].ProviderID, w.Machines[1].ProviderID = w.Machines[0].ProviderID, "metal3://x"
			}, "Nodes n0 and n1 both belong to its host",
		},
		"the Node has two members, one of which was never started": {
			func(w *world) { w.Members = append(w.Members, workload.EtcdMember{ID: 9, Hosts: []string{address(0)}}) }, "two etcd members, 1 and 9",
		},
	} {
		t.Run(doubt, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			leads(1)(w)
			tc.change(w)
			step := w.step()
			g.Expect(step.Action).To(Equal(Wait))
			g.Expect(step.Blocker.Reason).To(Equal(controlplanev1.EtcdHostNotIdentifiedReason))
			g.Expect(step.Blocker.Message).To(ContainSubstring(tc.message))
		})
	}
}

// unlinked removes the nodeRef of a Machine.
func (w *world) unlinked(i int) { w.Machines[i].Node = "" }

// A host is found by its identity, independent of the links of Cluster API and the infrastructure provider.
func TestMemberOfAHostWithoutNodeRef(t *testing.T) {
	for situation, change := range map[string]func(w *world){
		"its Node has its providerID": func(w *world) { w.unlinked(0); w.Nodes[0].HostUID = "" },
		"its Node has its label":      func(w *world) { w.unlinked(0); w.Nodes[0].ProviderID = "" },
		"it came back with its label": func(w *world) { w.Nodes[0].ProviderID = "" },
		"it came back with another name": func(w *world) {
			w.Machines[0].Node = "before"
			w.Nodes[0].HostUID = ""
		},
		"none of its control plane is linked": func(w *world) {
			for i := range w.Machines {
				w.unlinked(i)
			}
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			leads(1)(w)
			change(w)
			w.Machines[0].UID = "of m0"
			step := w.step()
			g.Expect(step.Action).To(Equal(RemoveMember), "%s: %s", step.Blocker.Reason, step.Blocker.Message)
			g.Expect(step.Member.Name).To(Equal("n0"))
			g.Expect(step.Machine.Node).To(Equal("n0"))
			g.Expect(step.Leaves).To(Equal(ReleasedHost{
				Machine:    "m0",
				MachineUID: "of m0",
				ProviderID: w.Machines[0].ProviderID,
				HostUID:    w.Machines[0].HostUID,
				Node:       "n0",
				UID:        "n0",
				Addresses:  []string{address(0)},
				Members:    []string{"1"},
			}))
		})
	}
}

// The Nodes of workers, or of a Machine that was removed from the control plane, are those of other hosts too.
func TestMemberOfAMachineOutsideTheControlPlane(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(3)
	w.spare(noon.Add(-time.Hour))
	w.Others, w.Machines = []quorum.Machine{{Name: "m2", ProviderID: "metal3://n2"}}, slices.Delete(w.Machines, 2, 3)
	step := w.step()
	g.Expect(step.Action).To(Equal(Release), step.Blocker.Message)
	g.Expect(step.Machine.Name).To(Equal("m3"))
	g.Expect(step.Leaves).To(Equal(ReleasedHost{}), "it leaves nothing by which it could be known")
	w.Machines[2].HostUID = "host of n9"
	g.Expect(w.step().Leaves).To(Equal(ReleasedHost{Machine: "m3", HostUID: "host of n9"}))
}

// A blocker without an event needs another inspection; the others end with an event.
func TestWaitsThatEndWithAnEvent(t *testing.T) {
	for situation, tc := range map[string]struct {
		change  func(w *world)
		watched bool
	}{
		"it is the only member":     {func(w *world) { w.Members = w.Members[:1] }, false},
		"OpenShift removes it":      {func(w *world) { w.MachineAPI = true }, false},
		"the topology is another":   {func(w *world) { w.Topology = configv1.DualReplicaTopologyMode }, true},
		"another is being removed":  {func(w *world) { w.Machines[1].Deleted, w.Machines[1].HasHook = noon, false }, true},
		"another is not cleaned up": {func(w *world) { w.ReleasedHosts = []ReleasedHost{{Node: "n9"}} }, true},
		"another is down":           {func(w *world) { w.Members[1].Problem = "does not answer" }, false},
		"the state is unknown":      {func(w *world) { w.Doubt = "they do not agree" }, false},
		"etcd is full":              {func(w *world) { alarm(workload.EtcdNoSpace, 1)(w) }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			leads(2)(w)
			tc.change(w)
			step := w.step()
			g.Expect(step.Action).To(Equal(Wait))
			g.Expect(step.Blocker.Watched).To(Equal(tc.watched), step.Blocker.Message)
		})
	}
}

func TestMessagesNameThree(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(9)
	for i := range 5 {
		w.fail(8 - i)
	}
	g.Expect(w.step().Blocker.Message).To(ContainSubstring("(n4 does not answer, n5 does not answer, n6 does not answer and 2 more)"))
}

func TestMembersOfReleasedHost(t *testing.T) {
	left := ReleasedHost{Node: "n0", UID: "n0", Addresses: []string{address(0)}, Members: []string{"1"}}
	for situation, tc := range map[string]struct {
		change func(w *world)
		action Action
		reason string
	}{
		"nothing: cleaned up": {func(w *world) { w.drop(0) }, Release, ""},
		"it was added once more, as a learner: removed": {
			func(w *world) { w.fail(0); w.Members[0].Learner = true; w.gone(0) }, RemoveMember, "",
		},
		"it was added and promoted: removed": {func(w *world) { w.fail(0); w.gone(0) }, RemoveMember, ""},
		"it was added and never started: removed by its address": {func(w *world) {
			w.fail(0)
			w.Members[0].Learner, w.Members[0].Name = true, ""
			w.gone(0)
		}, RemoveMember, ""},
		"it was added, and another joins: removed": {
			func(w *world) { w.fail(0); w.join(3); w.Members[3].Learner = true; w.gone(0) }, RemoveMember, "",
		},
		"another host has its name and its member is the recorded one: removed": {
			func(w *world) { w.fail(0); w.Nodes[0].UID = "new" }, RemoveMember, "",
		},
		"another host has its name, and it was added at its old address: removed": {func(w *world) {
			w.fail(0)
			w.Members[0].ID = 9
			w.Nodes[0].UID, w.Nodes[0].Addresses = "new", []string{"192.168.111.99"}
		}, RemoveMember, ""},
		"another host has its name and its address, and a member is down there: waits": {func(w *world) {
			w.fail(0)
			w.Members[0].ID, w.Nodes[0].UID = 9, "new"
		}, Wait, controlplanev1.EtcdHostNotIdentifiedReason},
		"another host has its name and its address, and a member is not started there: waits": {func(w *world) {
			w.fail(0)
			w.Members[0].ID, w.Members[0].Name, w.Members[0].Learner, w.Nodes[0].UID = 9, "", true, "new"
		}, Wait, controlplanev1.EtcdHostNotIdentifiedReason},
		"another host has its name and its address, and is a member: done": {func(w *world) {
			leads(1)(w)
			w.Members[0].ID, w.Nodes[0].UID = 9, "new"
		}, Release, ""},
		"another host has its name, and is no member yet: done": {func(w *world) {
			leads(1)(w)
			w.Nodes[0].UID, w.Members = "new", w.Members[1:]
		}, Release, ""},
		"it was added, and another is away: waits": {
			func(w *world) { w.fail(0); w.fail(1); w.gone(0) }, Wait, controlplanev1.EtcdQuorumAtRiskReason,
		},
		"it answers: waits":      {func(w *world) { leads(1)(w); w.gone(0) }, Wait, controlplanev1.ReleasedHostRunningReason},
		"its Node exists: waits": {func(w *world) { w.fail(0) }, Wait, controlplanev1.WaitingForMachinesDeletionReason},
		"one that was not started is at a new Node of its address: that is not it": {func(w *world) {
			leads(1)(w)
			w.Members[0].ID, w.Members[0].Learner, w.Members[0].Name, w.Nodes[0].Name = 9, true, "", "n9"
		}, Release, ""},
		"the state is unknown: waits": {
			func(w *world) { w.Doubt = "they do not agree"; w.gone(0) }, Wait, controlplanev1.EtcdUnknownReason,
		},
		"etcd was restored without it: cleaned up": {func(w *world) { w.restored(2); w.gone(0) }, Release, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			tc.change(w)
			step := w.DecideReleased(left, &w.Etcd)
			g.Expect(step.Action).To(Equal(tc.action), "%s: %s", step.Blocker.Reason, step.Blocker.Message)
			g.Expect(step.Blocker.Reason).To(Equal(tc.reason))
			if tc.action == RemoveMember {
				g.Expect(step.Member.ID).To(BeElementOf(uint64(1), uint64(9)))
				g.Expect(step.Via.Name).NotTo(BeEmpty())
			}
		})
	}
}

// register records the Nodes as they are known without a request to the cluster.
func (w *world) register() {
	w.Registered = nil
	for _, n := range w.Nodes {
		w.Registered = append(w.Registered, n.Node)
	}
}

// A released host runs until it is switched off, and OpenShift adds running hosts to etcd.
func TestReleasedHostThatRuns(t *testing.T) {
	left := ReleasedHost{
		Machine:    "m0",
		ProviderID: "metal3://n0",
		HostUID:    "host of n0",
		Node:       "n0",
		UID:        "n0",
		Addresses:  []string{address(0)},
		Members:    []string{"99"},
	}
	nodeless := ReleasedHost{Machine: "m0", HostUID: "host of n0"}
	for situation, tc := range map[string]struct {
		change func(w *world)
		left   ReleasedHost
		action Action
		reason string
	}{
		"it is no member":       {func(w *world) { w.Members = w.Members[1:] }, left, Release, ""},
		"it is a learner":       {func(w *world) { w.Members[0].Learner = true }, left, RemoveMember, ""},
		"it votes again":        {func(*world) {}, left, RemoveMember, ""},
		"it leads":              {func(w *world) { leads(0)(w) }, left, MoveLeader, ""},
		"it votes, and is off":  {func(w *world) { w.fail(0) }, left, RemoveMember, ""},
		"it votes, has no Node": {func(w *world) { w.fail(0); w.Nodes = w.Nodes[1:] }, left, RemoveMember, ""},
		"it was not started": {func(w *world) {
			w.Members[0].Learner, w.Members[0].Name, w.Members[0].Problem = true, "", "does not answer"
		}, left, RemoveMember, ""},
		"it was not started, and has no Node": {func(w *world) {
			w.Members[0].Learner, w.Members[0].Name, w.Members[0].Problem, w.Nodes = true, "", "does not answer", w.Nodes[1:]
		}, left, RemoveMember, ""},
		"one that was not started is elsewhere": {func(w *world) {
			w.Members[0].Learner, w.Members[0].Name, w.Members[0].Problem = true, "", "does not answer"
			w.Members[0].Hosts = []string{"192.168.111.99"}
		}, left, Release, ""},
		"its name is at another Node": {func(w *world) { w.Members[0].Hosts = []string{address(1)} }, left, Release, ""},
		"another host has its name":   {func(w *world) { w.renewed("metal3://other", "other") }, left, Release, ""},
		"another live Machine runs as its Node": {func(w *world) {
			w.renewed("metal3://n3", "")
			w.Machines = append(w.Machines, quorum.Machine{Name: "m3", Node: "n0", ProviderID: "metal3://n3"})
		}, left, Release, ""},
		"its Node registered again, and votes": {
			func(w *world) { w.renewed("", "") }, left, Wait, controlplanev1.EtcdHostNotIdentifiedReason,
		},
		"its Node registered again with its providerID, and votes": {
			func(w *world) { w.renewed("metal3://n0", "") }, left, Wait, controlplanev1.EtcdHostNotIdentifiedReason,
		},
		"its Node registered again, and is no member yet": {
			func(w *world) { w.renewed("", ""); w.Members = w.Members[1:] }, left, Wait, controlplanev1.EtcdHostNotIdentifiedReason,
		},
		"its Node registered again, is no member, and is silent": {
			func(w *world) { w.renewed("", ""); w.Members, w.Nodes[0].Silent = w.Members[1:], true }, left, Release, "",
		},
		"its Node registered again, votes, and is silent": {
			func(w *world) { w.renewed("", ""); w.fail(0); w.Nodes[0].Silent = true }, left, Wait, controlplanev1.EtcdHostNotIdentifiedReason,
		},
		"its Node registered again, but the member is the recorded one": {
			func(w *world) { w.renewed("", ""); w.Members[0].ID = 0x99 }, left, RemoveMember, "",
		},
		"it was never removed": {func(w *world) { w.Members[0].ID, w.Members[0].Name = 0x99, "before" }, left, RemoveMember, ""},
		"one that was not started is at a new Node of its address": {func(w *world) {
			w.Members[0].Learner, w.Members[0].Name, w.Members[0].Problem, w.Nodes[0].Name = true, "", "does not answer", "n9"
		}, left, Release, ""},
		"one that was not started is nowhere": {func(w *world) {
			w.Members[0].Learner, w.Members[0].Name, w.Members[0].Problem, w.Nodes = true, "", "does not answer", w.Nodes[1:]
		}, nodeless, Release, ""},
		"it became a Node only then, and a member": {func(*world) {}, nodeless, RemoveMember, ""},
		"it did not become a Node": {func(w *world) {
			w.Nodes, w.Members, w.Revisions = w.Nodes[1:], w.Members[1:], w.Revisions[1:]
		}, nodeless, Release, ""},
		"another member is at no Node, and a foreign Machine without Node, which may be its host's, is deleted": {func(w *world) {
			w.Members[2].Name, w.Members[2].Hosts = "", []string{"10.9.9.9"}
			w.Others = []quorum.Machine{{Name: "w0", Deleted: noon}}
		}, left, Wait, controlplanev1.WaitingForMachinesDeletionReason},
		"another is away":      {func(w *world) { w.fail(1); leads(2)(w) }, left, Wait, controlplanev1.EtcdQuorumAtRiskReason},
		"a rollout goes on":    {func(w *world) { w.Operators[0].Progressing = true }, left, Wait, controlplanev1.WaitingForEtcdReason},
		"the state is unknown": {func(w *world) { w.Doubt = "they do not agree" }, left, Wait, controlplanev1.EtcdUnknownReason},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			leads(1)(w)
			w.Machines[0].HasHook = false
			tc.change(w)
			step := w.DecideLeaving(w.Machines[0], tc.left, &w.Etcd)
			g.Expect(step.Action).To(Equal(tc.action), "%s: %s", step.Blocker.Reason, step.Blocker.Message)
			g.Expect(step.Blocker.Reason).To(Equal(tc.reason))
			if tc.action == RemoveMember {
				g.Expect(step.Machine.Name).To(Equal("m0"))
				g.Expect(step.Via.Name).To(Equal("n1"))
				g.Expect(step.Leaves.Node).To(Equal("n0"))
				g.Expect(step.Leaves.UID).To(BeEquivalentTo("n0"))
				g.Expect(step.Leaves.Members).To(ContainElement(idOf(step.Member)))
			}
		})
	}
}

// A record belongs to a Machine by Node, or by name and identity. A wrong answer blocks all other Machines,
// or treats a host as removed that is still being removed.
func TestRecordBelongsToAMachine(t *testing.T) {
	byName := ReleasedHost{Machine: "m0", HostUID: "host of n0"}
	for situation, tc := range map[string]struct {
		left   ReleasedHost
		change func(w *world)
		is     bool
	}{
		"its Node, as an earlier version recorded it": {ReleasedHost{Node: "n0"}, func(*world) {}, true},
		"its Node, but it lives": {
			ReleasedHost{Node: "n0"}, func(w *world) { w.Machines[0].Deleted = time.Time{} }, true,
		},
		"name, and the host was unknown": {
			ReleasedHost{Machine: "m0", ProviderID: "metal3://n0"}, func(w *world) { w.unlinked(0); w.Machines[0].ProviderID = "" }, true,
		},
		"another Node": {ReleasedHost{Node: "n1", UID: "n1"}, func(*world) {}, false},
		"the Node that its host is now, which has another name": {
			ReleasedHost{Node: "n0", UID: "n0"}, func(w *world) { w.Machines[0].Node = "before" }, true,
		},
		"a Node that its host was, whose name another has": {
			ReleasedHost{Node: "n0", UID: "gone"}, func(w *world) { w.Machines[0].Node = "before" }, false,
		},
		"name and host": {byName, func(w *world) { w.unlinked(0) }, true},
		"name and host, by the providerID": {
			ReleasedHost{Machine: "m0", ProviderID: "metal3://n0", HostUID: "x"}, func(w *world) { w.unlinked(0) }, true,
		},
		"its name, but another host": {ReleasedHost{Machine: "m0", HostUID: "x"}, func(w *world) { w.unlinked(0) }, false},
		"its name, but another providerID": {
			ReleasedHost{Machine: "m0", ProviderID: "x", HostUID: "host of n0"}, func(w *world) { w.unlinked(0) }, false,
		},
		"its name, and its host is now unknown": {byName, func(w *world) { w.unlinked(0); w.Machines[0].HostUID = "" }, true},
		"its name and its UID, and its host is unknown": {
			ReleasedHost{Machine: "m0", MachineUID: "m0", ProviderID: "metal3://n0"},
			func(w *world) { w.Machines[0] = quorum.Machine{Name: "m0", UID: "m0", HasHook: true, Deleted: noon} }, true,
		},
		"its name, but another UID, and its host is unknown": {
			ReleasedHost{Machine: "m0", MachineUID: "former", ProviderID: "metal3://n0", HostUID: "host of n0"},
			func(w *world) { w.Machines[0] = quorum.Machine{Name: "m0", UID: "m0", HasHook: true, Deleted: noon} }, false,
		},
		"name and host, and a move has changed its UID": {
			ReleasedHost{Machine: "m0", MachineUID: "former", HostUID: "host of n0"},
			func(w *world) { w.unlinked(0); w.Machines[0].UID = "m0" }, true,
		},
		"its host, but another name":  {ReleasedHost{Machine: "m7", HostUID: "host of n0"}, func(w *world) { w.unlinked(0) }, false},
		"name and host, but it lives": {byName, func(w *world) { w.unlinked(0); w.Machines[0].Deleted = time.Time{} }, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			tc.change(w)
			w.register()
			w.ReleasedHosts = []ReleasedHost{tc.left}
			g.Expect(w.isOf(tc.left, w.Machines[0])).To(Equal(tc.is))
			g.Expect(w.Released(w.Machines[0])).To(Equal(tc.is))
			_, going := w.DeletingMachine(tc.left)
			g.Expect(going).To(BeFalse(), "it is held")
			w.Machines[0].HasHook = false
			_, going = w.DeletingMachine(tc.left)
			g.Expect(going).To(Equal(tc.is && !w.Machines[0].Deleted.IsZero()))
			w.Others, w.Machines = w.Machines[:1], w.Machines[1:]
			_, still := w.DeletingMachine(tc.left)
			g.Expect(still).To(Equal(going), "also when it was taken out")
		})
	}
}

// A host is recorded with its current Node, although Cluster API has another one. Its own Machine does not
// wait for the record.
func TestRecordOfAHostWithAnotherName(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(3)
	leads(1)(w)
	w.Machines[0].Node = "before"
	w.register()
	w.ReleasedHosts = []ReleasedHost{w.step().Leaves}
	g.Expect(w.ReleasedHosts[0].Node).To(Equal("n0"))
	g.Expect(w.StateOf(w.ReleasedHosts[0])).To(Equal(Leaving))
	step := w.step()
	g.Expect(step.Action).To(Equal(RemoveMember), step.Blocker.Message)
	g.Expect(step.Machine.Name).To(Equal("m0"))
}

// unproven adds a Machine to which only an Agent assigns the host of another.
func (w *world) unproven(i int) quorum.Machine {
	m := w.Machines[i]
	m.Name, m.UID, m.ProviderID = m.Name+"-again", m.UID+"-again", ""
	return m
}

// gone deletes Machine and Node of a host, whose member stays.
func (w *world) gone(i int) {
	w.Machines, w.Nodes, w.Revisions = slices.Delete(w.Machines, i, i+1), slices.Delete(w.Nodes, i, i+1), slices.Delete(w.Revisions, i, i+1)
}

func TestStateOfAReleasedHost(t *testing.T) {
	left := ReleasedHost{Node: "n0", UID: "n0"}
	for situation, tc := range map[string]struct {
		change func(w *world)
		fate   HostState
	}{
		"its Machine is being deleted":                        {func(*world) {}, Leaving},
		"its Machine is being deleted, and has lost its Node": {func(w *world) { w.Nodes = w.Nodes[1:] }, Leaving},
		"it was removed from its control plane while it is deleted": {
			func(w *world) {
				w.Others, w.Machines = []quorum.Machine{w.Machines[0]}, w.Machines[1:]
				w.Others[0].Node = ""
			}, Leaving,
		},
		"its Machine came without its deletion": {func(w *world) { w.Machines[0].Deleted = time.Time{} }, Staying},
		"its Machine came so, and Cluster API has not found its Node": {
			func(w *world) { w.Machines[0].Deleted = time.Time{}; w.unlinked(0) }, Staying,
		},
		"only an Agent assigns it to a Machine that exists": {
			func(w *world) { w.Machines[0].Deleted, w.Machines[0].ProviderID = time.Time{}, "" }, Unconfirmed,
		},
		"its Machine came so, and an Agent assigns it to another": {
			func(w *world) { w.Machines[0].Deleted = time.Time{}; w.Others = []quorum.Machine{w.unproven(0)} }, Staying,
		},
		"an Agent assigns it to another, and its Machine came so": {func(w *world) {
			w.Machines[0].Deleted = time.Time{}
			w.Machines = slices.Insert(w.Machines, 0, w.unproven(0))
		}, Staying},
		"its Machine came so, and the Node is deleted": {
			func(w *world) { w.Machines[0].Deleted, w.Nodes = time.Time{}, w.Nodes[1:] }, WithoutNode,
		},
		"its Machine is deleted, and the Node exists": {func(w *world) { w.Machines = w.Machines[1:] }, Remaining},
		"both are deleted":                            {func(w *world) { w.drop(0) }, Deleted},
		"both are deleted, and a new Machine gets the same host": {func(w *world) {
			w.drop(0)
			w.Machines = append(w.Machines, quorum.Machine{Name: "m0", ProviderID: "metal3://n0"})
		}, Deleted},
		"another host has its name": {
			func(w *world) { w.Machines[0].Deleted, w.Nodes[0].UID = time.Time{}, "another" }, Deleted,
		},
		"Cluster API knew it by another name, and it is being deleted": {func(w *world) { w.Machines[0].Node = "before" }, Leaving},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			tc.change(w)
			w.register()
			g.Expect(w.StateOf(left)).To(Equal(tc.fate))
			rests := left.Stalled(tc.fate)
			g.Expect(rests != nil).To(Equal(tc.fate == Remaining || tc.fate == WithoutNode))
			if rests != nil {
				g.Expect(rests.Watched).To(BeTrue())
				g.Expect(rests.Message).To(ContainSubstring("delete"))
			}
		})
	}
}

// A host that was never a Node is known only by its Machine.
func TestStateOfAHostWithoutNode(t *testing.T) {
	left := ReleasedHost{Machine: "m0", ProviderID: "metal3://n0", HostUID: "host of n0"}
	for situation, tc := range map[string]struct {
		change func(w *world)
		fate   HostState
		action Action
	}{
		"its Machine is being deleted": {
			func(w *world) { w.unlinked(0); w.Nodes, w.Members = w.Nodes[1:], w.Members[1:] }, Leaving, Release,
		},
		"it became a Node, and is being deleted":       {func(w *world) { w.unlinked(0) }, Leaving, Wait},
		"its Machine is deleted":                       {func(w *world) { w.drop(0) }, Deleted, Release},
		"its Machine is deleted, and it became a Node": {func(w *world) { w.Machines = w.Machines[1:] }, Remaining, Wait},
		"its Machine is deleted, and it became a Node with only its label": {func(w *world) {
			w.Machines, w.Nodes[0].ProviderID = w.Machines[1:], ""
		}, Remaining, Wait},
		"the next Machine of its name has the same host": {func(w *world) { w.Machines[0].Deleted = time.Time{} }, Staying, Wait},
		"an Agent of the former Machine makes it the next one's": {
			func(w *world) { w.Machines[0].Deleted, w.Machines[0].ProviderID = time.Time{}, "" }, Unconfirmed, Wait,
		},
		"the next Machine of its name is to have its host": {func(w *world) {
			w.unlinked(0)
			w.Machines[0].Deleted, w.Nodes, w.Members = time.Time{}, w.Nodes[1:], w.Members[1:]
		}, Deleted, Release},
		"a member without name is somewhere": {func(w *world) {
			w.drop(0)
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Learner: true, Hosts: []string{"192.168.111.99"}, Problem: "does not answer"})
		}, Deleted, Release},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			leads(1)(w)
			tc.change(w)
			w.register()
			g.Expect(w.StateOf(left.on(w.Registered))).To(Equal(tc.fate))
			step := w.DecideReleased(left, &w.Etcd)
			g.Expect(step.Action).To(Equal(tc.action), step.Blocker.Message)
			if tc.action == Wait {
				g.Expect(step.Blocker.Message).To(ContainSubstring("Node n0 still exists"))
			}
		})
	}
	g := NewWithT(t)
	g.Expect(left.Origin()).To(Equal("Machine m0"))
	g.Expect(ReleasedHost{Machine: "m0", Node: "n0"}.Origin()).To(Equal("Node n0"))
}

func TestRecordedHosts(t *testing.T) {
	g := NewWithT(t)
	situation := Situation{
		ReleasedHosts: []ReleasedHost{{Node: "n1"}, {Node: "n0", UID: "u", Addresses: []string{"a"}, Members: []string{"1"}}},
	}
	_, changed := situation.Recorded(ReleasedHost{})
	g.Expect(changed).To(BeFalse())
	_, changed = situation.Recorded(ReleasedHost{Node: "n0", UID: "u", Addresses: []string{"a"}, Members: []string{"1"}})
	g.Expect(changed).To(BeFalse())
	recorded, changed := situation.Recorded(ReleasedHost{Node: "n0", UID: "u", Addresses: []string{"a", "b"}, Members: []string{"9"}})
	g.Expect(changed).To(BeTrue())
	g.Expect(recorded).To(Equal([]ReleasedHost{
		{Node: "n1"}, {Node: "n0", UID: "u", Addresses: []string{"a", "b"}, Members: []string{"1", "9"}},
	}))
	recorded, changed = situation.Recorded(ReleasedHost{Node: "n0", UID: "v"})
	g.Expect(changed).To(BeTrue())
	g.Expect(recorded).To(HaveLen(3))
	g.Expect(situation.ReleasedHosts[1].Members).To(Equal([]string{"1"}), "what was read stays")
	g.Expect(situation.Without(recorded[1])).To(Equal([]ReleasedHost{{Node: "n1"}}))

	spare := ReleasedHost{Machine: "m3", HostUID: "h3"}
	recorded, changed = situation.Recorded(spare)
	g.Expect(changed).To(BeTrue(), "a host without Node")
	situation.ReleasedHosts = recorded
	_, changed = situation.Recorded(spare)
	g.Expect(changed).To(BeFalse())
	recorded, _ = situation.Recorded(ReleasedHost{Machine: "m3", HostUID: "h3", Node: "n3", UID: "u3"})
	g.Expect(recorded).To(And(HaveLen(3), ContainElement(ReleasedHost{Machine: "m3", HostUID: "h3", Node: "n3", UID: "u3"})), "it became one")
	recorded, changed = situation.Recorded(ReleasedHost{Machine: "m3", MachineUID: "of m3", HostUID: "h3"})
	g.Expect(changed).To(BeTrue(), "an earlier version did not record the UID")
	g.Expect(recorded).To(And(HaveLen(3), ContainElement(ReleasedHost{Machine: "m3", MachineUID: "of m3", HostUID: "h3"})))
	recorded, _ = situation.Recorded(ReleasedHost{Machine: "m3", HostUID: "of the next host"})
	g.Expect(recorded).To(HaveLen(4), "another of that name")
	recorded, _ = situation.Recorded(ReleasedHost{Machine: "m3", HostUID: "h3", ProviderID: "of the next host"})
	g.Expect(recorded).To(HaveLen(4), "and another")
	g.Expect(situation.Without(ReleasedHost{})).To(HaveLen(3), "an empty record matches none")
	became := Situation{ReleasedHosts: []ReleasedHost{{Machine: "m3", HostUID: "h3", Node: "n3", UID: "u3"}}}
	_, changed = became.Recorded(spare)
	g.Expect(changed).To(BeFalse(), "its Node is not forgotten")
	recorded, _ = situation.Recorded(ReleasedHost{Machine: "m1", ProviderID: "p1", Node: "n1"})
	g.Expect(recorded).To(ContainElement(ReleasedHost{Machine: "m1", ProviderID: "p1", Node: "n1"}), "what an earlier version did not know")
	situation.ReleasedHosts = recorded
	recorded, changed = situation.Recorded(ReleasedHost{Node: "n1"})
	g.Expect(recorded).To(ContainElement(ReleasedHost{Machine: "m1", ProviderID: "p1", Node: "n1"}), "nothing is forgotten")
	g.Expect(changed).To(BeFalse())
}

func TestRecordOfAHostWithoutItsNode(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(3)
	w.fail(0)
	w.Nodes = w.Nodes[1:]
	g.Expect(w.step().Leaves).To(Equal(ReleasedHost{
		Machine: "m0", ProviderID: "metal3://n0", HostUID: "host of n0", Node: "n0", Addresses: []string{address(0)}, Members: []string{"1"},
	}))
}
