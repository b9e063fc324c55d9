package removal

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// leaveNode deletes the Machine m0, whose host was released, as Cluster API does without deleting its Node.
func (w *world) leaveNode() {
	w.released()
	w.Machines = w.Machines[1:]
}

func TestNodeOfAReleasedHostIsDeleted(t *testing.T) {
	for situation, tc := range map[string]struct {
		change  func(*world)
		silence time.Duration // zero: facts.UnreachableTime
		against string        // empty: the Node is deleted
	}{
		"its kubelet is silent and its member is removed": {},
		"its member is back and does not answer": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{address(0)}, Problem: "does not answer"})
			w.Condemned = "3 of 4 members are available, n0 is unhealthy"
		}},
		"its member was never started": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Learner: true, Hosts: []string{address(0)}, Problem: "was never started"})
		}},
		"its member is back behind a dead kubelet": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{address(0)}, Problem: "does not answer"})
			w.Condemned = "3 of 4 members are available, n1 is unhealthy"
		}, against: "the etcd operator does not report it as unhealthy"},
		"a finalizer blocks its deletion": {
			change: func(w *world) { w.Nodes[0].Deleting = true }, against: "Node n0, whose Machine was deleted, is being deleted",
		},
		"its kubelet reports": {change: func(w *world) { w.Nodes[0].Silent = false }, against: "its condition Ready is not Unknown"},
		"its kubelet is silent for a moment": {
			silence: facts.UnreachableTime - 1, against: "until the kubelet has not reported for 10 minutes",
		},
		"its Node registers again": {
			change: func(w *world) { w.Nodes[0].UID = "again" }, against: "Switch its host off, then delete the Node",
		},
		"its Node lost its label": {change: func(w *world) { w.Nodes = w.Nodes[1:] }, against: "Switch its host off, then delete the Node"},
		"its Node runs on another": {
			change: func(w *world) { w.Nodes[0].ProviderID, w.Nodes[0].HostUID = "metal3://other", "" }, against: "another identity",
		},
		"its release was not recorded": {
			change: func(w *world) { w.ReleasedHosts[0].Released = nil }, against: "Switch its host off, then delete the Node",
		},
		"its record has no Node of its own": {change: func(w *world) {
			w.ReleasedHosts[0].Addresses = nil // as ReleasedHost.on finds it by its identity
		}, against: "Switch its host off, then delete the Node"},
		"its record has no UID": {
			change: func(w *world) { w.ReleasedHosts[0].UID, w.Nodes[0].UID = "", "" }, against: "Switch its host off, then delete the Node",
		},
		"a member of its name answers": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{"192.168.111.99"}})
		}, against: "etcd member n0 of this Node answers"},
		"a learner at its address answers": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Learner: true, Hosts: []string{address(0)}})
		}, against: "of this Node answers"},
		"a member at its recorded address answers": {change: func(w *world) {
			w.Nodes[0].Addresses = []string{"192.168.111.98"}
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n9", Hosts: []string{address(0)}})
		}, against: "etcd member n9 of this Node answers"},
		"the member with its recorded ID answers": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 1, Name: "n9", Hosts: []string{"192.168.111.99"}})
		}, against: "etcd member n9 of this Node answers"},
		"members do not agree":     {change: func(w *world) { w.Doubt = "the members do not agree" }, against: "do not agree"},
		"etcd has lost its quorum": {change: func(w *world) { w.Lost = true }, against: "quorum"},
		"no member answers":        {change: func(w *world) { w.Members = nil }, against: "no etcd member answers"},
		"Pacemaker runs etcd":      {change: func(w *world) { w.Topology = configv1.DualReplicaTopologyMode }, against: "DualReplica"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			w.leaveNode()
			if tc.change != nil {
				tc.change(w)
			}
			node, against := w.DecideNode(w.ReleasedHosts[0], &w.Etcd, cmp.Or(tc.silence, facts.UnreachableTime))
			if tc.against == "" {
				g.Expect(against).To(BeNil())
				g.Expect(node.UID).To(Equal(types.UID("n0")))
				return
			}
			g.Expect(node).To(BeNil())
			g.Expect(against.Message).To(ContainSubstring(tc.against))
		})
	}
}

// A Machine that exists, even one that is being deleted, blocks the deletion of its Node.
func TestNodeWithAMachineIsNotLeftBehind(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(3)
	w.released()
	g.Expect(w.StateOf(w.ReleasedHosts[0])).To(Equal(Leaving))
	w.leaveNode()
	g.Expect(w.StateOf(w.ReleasedHosts[0])).To(Equal(Remaining))
	w.Machines = append(w.Machines, quorum.Machine{Name: "m9", Node: "n0", ProviderID: "metal3://n9"})
	g.Expect(w.StateOf(w.ReleasedHosts[0])).To(Equal(Staying))
	w.Machines = w.Machines[:len(w.Machines)-1]
	w.Others = append(w.Others, quorum.Machine{Name: "m9", ProviderID: "metal3://n0"})
	g.Expect(w.StateOf(w.ReleasedHosts[0])).To(Equal(Staying))
}
