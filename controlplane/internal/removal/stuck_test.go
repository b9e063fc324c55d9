package removal

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// released makes m0 a Machine whose host was released at noon, is no member and does not run.
func (w *world) released() {
	w.Machines[0].HasHook, w.Machines[0].Waits, w.Machines[0].Terminating = false, false, true
	w.ReleasedHosts = []ReleasedHost{
		{
			Machine:    "m0",
			ProviderID: "metal3://n0",
			HostUID:    "host of n0",
			Node:       "n0",
			UID:        "n0",
			Addresses:  []string{address(0)},
			Members:    []string{"1"},
			Released:   ptr.To(metav1.NewTime(noon)),
		},
	}
	w.Members = w.Members[1:]
	w.Nodes[0].Silent = true
	for i := range w.Nodes {
		w.Registered = append(w.Registered, w.Nodes[i].Node)
	}
}

// renewed deletes the Node of m0, which registers again with another UID and another identity.
func (w *world) renewed(providerID, hostUID string) {
	w.Nodes[0].UID, w.Nodes[0].ProviderID, w.Nodes[0].HostUID = "again", providerID, hostUID
	w.register()
}

func TestStuck(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*world)
		after  time.Duration
		stuck  bool
		next   time.Duration
	}{
		"for half an hour": {after: 30 * time.Minute, stuck: true},
		"not yet":          {after: 29 * time.Minute, next: time.Minute},
		"released long after its deletion": {
			change: func(w *world) { w.Machines[0].Deleted = noon.Add(-time.Hour) }, after: time.Minute, next: 29 * time.Minute,
		},
		"its member was recorded, but its hook removed by hand": {change: func(w *world) { w.ReleasedHosts[0].Released = nil }, after: time.Hour},
		"its release was not recorded":                          {change: func(w *world) { w.ReleasedHosts = nil }, after: time.Hour},
		"it still has the hook":                                 {change: func(w *world) { w.Machines[0].HasHook = true }, after: time.Hour},
		"Cluster API does something else":                       {change: func(w *world) { w.Machines[0].Terminating = false }, after: time.Hour},
		"it is not being deleted": {
			change: func(w *world) { w.Machines[0].Deleted = time.Time{} }, after: time.Hour,
		},
		"another Machine of the name was created": {
			change: func(w *world) { w.Machines[0].ProviderID, w.Machines[0].Node = "metal3://n9", "n9" }, after: time.Hour,
		},
		"a replacement with its name and without a host is deleted": {change: func(w *world) {
			w.ReleasedHosts[0].MachineUID = "former"
			w.Machines[0] = quorum.Machine{Name: "m0", UID: "replacement", Terminating: true, Deleted: noon.Add(time.Minute)}
		}, after: time.Hour},
		"a replacement on the same host is deleted": {change: func(w *world) {
			w.ReleasedHosts[0].MachineUID = "former"
			w.Machines[0].UID, w.Machines[0].Deleted = "replacement", noon.Add(time.Hour)
		}, after: 61 * time.Minute, next: 29 * time.Minute},
		"the record is of another Machine alone": {change: func(w *world) {
			w.ReleasedHosts[0].Machine, w.ReleasedHosts[0].Node, w.ReleasedHosts[0].ProviderID = "m9", "n9", "metal3://n9"
		}, after: time.Hour},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			w.released()
			if tc.change != nil {
				tc.change(w)
			}
			stuck, next := w.Stuck(noon.Add(tc.after))
			if tc.stuck {
				g.Expect(stuck).To(ConsistOf(HaveField("Name", "m0")))
			} else {
				g.Expect(stuck).To(BeEmpty())
			}
			g.Expect(next).To(Equal(tc.next))
		})
	}
}

func TestAgainstSuccessor(t *testing.T) {
	for situation, tc := range map[string]struct {
		change  func(*world)
		against string // empty: nothing
	}{
		"its host is no member, and does not run": {},
		"its Node is deleted":                     {change: func(w *world) { w.Nodes = w.Nodes[1:] }},
		"its kubelet reports": {
			change: func(w *world) { w.Nodes[0].Silent = false }, against: "the kubelet of Node n0 reports",
		},
		"another host has its name, and runs": {change: func(w *world) { w.renewed("metal3://other", "other"); w.Nodes[0].Silent = false }},
		"another host has its name, and is a member": {change: func(w *world) {
			w.renewed("metal3://other", "other")
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{address(0)}})
		}},
		"only the label proves another host": {change: func(w *world) { w.renewed("", "other"); w.Nodes[0].Silent = false }},
		"another live Machine runs as its Node": {change: func(w *world) {
			w.renewed("metal3://n3", "host of n0")
			w.Machines = append(w.Machines, quorum.Machine{Name: "m3", Node: "n0", ProviderID: "metal3://n3"})
			w.Nodes[0].Silent = false
		}},
		"another Machine that is being deleted runs as its Node": {change: func(w *world) {
			w.renewed("metal3://n3", "host of n0")
			w.Machines = append(w.Machines, quorum.Machine{Name: "m3", Node: "n0", ProviderID: "metal3://n3", Deleted: noon})
			w.Nodes[0].Silent = false
		}, against: "nothing proves"},
		"its Node registers again without identity": {
			change: func(w *world) { w.renewed("", ""); w.Nodes[0].Silent = false }, against: "its kubelet reports",
		},
		"its Node registers again with its providerID": {change: func(w *world) {
			w.renewed("metal3://n0", "")
			w.Nodes[0].Silent = false
		}, against: "nothing proves"},
		"its Node registers again with its label, and another providerID": {change: func(w *world) {
			w.renewed("metal3://other", "host of n0")
			w.Nodes[0].Silent = false
		}, against: "nothing proves"},
		"its Node registers again, and no UID was recorded": {change: func(w *world) {
			w.renewed("", "")
			w.ReleasedHosts[0].UID, w.Nodes[0].Silent = "", false
		}, against: "nothing proves"},
		"its record identifies no host": {change: func(w *world) {
			w.renewed("metal3://other", "other")
			w.ReleasedHosts[0].ProviderID, w.ReleasedHosts[0].HostUID, w.Nodes[0].Silent = "", "", false
		}, against: "nothing proves"},
		"its Node registered again, is silent, and no member": {change: func(w *world) { w.renewed("", "") }},
		"its Node registered again, and is a member by its name": {change: func(w *world) {
			w.renewed("", "")
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{"192.168.111.99"}, Problem: "does not answer"})
		}, against: "etcd member n0 has its name or its address"},
		"its Node registered again, and is a member by its address": {change: func(w *world) {
			w.renewed("", "")
			w.Nodes[0].Addresses = []string{"192.168.111.99"}
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Learner: true, Hosts: []string{"192.168.111.99"}, Problem: "does not answer"})
		}, against: "has its name or its address"},
		"its Node registered again, and a member has its former address": {change: func(w *world) {
			w.renewed("", "")
			w.Nodes[0].Addresses = []string{"192.168.111.99"}
			w.Members = append(w.Members, workload.EtcdMember{ID: 9, Learner: true, Hosts: []string{address(0)}, Problem: "does not answer"})
		}, against: "has its name or its address"},
		"OpenShift took it in again": {
			change: func(w *world) {
				w.Members = append(w.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{address(0)}})
			}, against: "is etcd member n0 again",
		},
		"and it does not serve": {
			change: func(w *world) {
				w.Members = append(w.Members, workload.EtcdMember{ID: 9, Learner: true, Hosts: []string{address(0)}, Problem: "does not answer"})
			}, against: "is etcd member 9",
		},
		"its member came back with its ID": {change: func(w *world) {
			w.Members = append(w.Members, workload.EtcdMember{ID: 1, Name: "n0", Hosts: []string{address(0)}})
		}, against: "again"},
		"members do not agree":         {change: func(w *world) { w.Doubt = "the members do not agree" }, against: "do not agree"},
		"etcd has lost its quorum":     {change: func(w *world) { w.Lost = true }, against: "quorum"},
		"no member answers":            {change: func(w *world) { w.Members = nil }, against: "no etcd member answers"},
		"Pacemaker runs etcd":          {change: func(w *world) { w.Topology = configv1.DualReplicaTopologyMode }, against: "DualReplica"},
		"its release was not recorded": {change: func(w *world) { w.ReleasedHosts = nil }, against: "it is not recorded"},
		"it still has the hook":        {change: func(w *world) { w.Machines[0].HasHook = true }, against: "it is not recorded"},
		"it is not being deleted":      {change: func(w *world) { w.Machines[0].Deleted = time.Time{} }, against: "it is not recorded"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(3)
			w.released()
			if tc.change != nil {
				tc.change(w)
			}
			against := w.AgainstSuccessor(w.Machines[0], &w.Etcd)
			if tc.against == "" {
				g.Expect(against).To(BeEmpty())
				return
			}
			g.Expect(against).To(HaveLen(1))
			g.Expect(against[0].Message).To(ContainSubstring(tc.against))
		})
	}
}
