package scaling

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is a control plane of Machines m0, m1... on Nodes n0, n1... Each Machine is a minute older than the
// next. n0 is the etcd leader.
type world struct {
	facts.Facts
	etcd workload.Etcd
}

func newWorld(hosts, wanted int) *world {
	w := &world{etcd: workload.Etcd{
		Topology:       configv1.HighlyAvailableTopologyMode,
		Operators:      []workload.ClusterOperator{{Name: "etcd", Available: true}, {Name: "kube-apiserver", Available: true}},
		LatestRevision: 7,
	}}
	w.ControlPlane = &controlplanev1.OpenshiftAssistedControlPlane{}
	w.ControlPlane.Spec.Replicas = ptr.To(int32(wanted))
	w.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{}
	for i := range hosts {
		w.join(i)
	}
	w.etcd.Members[0].Leader = true
	return w
}

func (w *world) join(i int) {
	node := fmt.Sprintf("n%d", i)
	m := w.make(i)
	m.Spec.ProviderID, m.Status.NodeRef.Name = "metal3://"+node, node
	w.etcd.Members = append(w.etcd.Members, workload.EtcdMember{ID: uint64(i + 1), Name: node, Hosts: []string{node}})
	w.etcd.Nodes = append(w.etcd.Nodes, workload.ControlPlaneNode{Node: workload.Node{
		Name: node, UID: types.UID(node),
		ProviderID: "metal3://" +
			node,
	}, Addresses: []string{node}})
	w.etcd.Revisions = append(w.etcd.Revisions, workload.Revision{Node: node, Current: 7})
}

// make adds a Machine whose host did not join.
func (w *world) make(i int) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name:              fmt.Sprintf("m%d", i),
		CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(i) * time.Minute)),
	}}
	w.Machines = append(w.Machines, m)
	w.Configs[m.Name] = &bootstrapv1.OpenshiftAssistedConfig{}
	return m
}

// arbiter changes a Machine to an arbiter.
func (w *world) arbiter(i int) {
	w.Configs[w.Machines[i].Name].Spec.Role = bootstrapv1.HostRoleArbiter
}

func (w *world) mark(i int) {
	w.Machines[i].Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
}

func (w *world) domains(names ...string) {
	for i, name := range names {
		w.Machines[i].Spec.FailureDomain = name
	}
}

func (w *world) down(i int) {
	w.etcd.Members[i].Problem = "does not answer"
	w.etcd.Operators[0].Degraded, w.etcd.Operators[1].Degraded = true, true
}

func reasons(steps []decision.Blocker) []string {
	var all []string
	for _, step := range steps {
		all = append(all, step.Reason)
	}
	return all
}

func TestDown(t *testing.T) {
	for situation, tc := range map[string]struct {
		hosts   int
		change  func(w *world)
		picked  string
		reasons []string
	}{
		"newest":                                {picked: "m4"},
		"marked":                                {change: func(w *world) { w.mark(1) }, picked: "m1"},
		"newest of marked Machines":             {change: func(w *world) { w.mark(1); w.mark(2) }, picked: "m2"},
		"failure domain with the most Machines": {change: func(w *world) { w.domains("a", "b", "b", "c", "a") }, picked: "m4"},
		"surplus in a failure domain":           {change: func(w *world) { w.domains("a", "b", "b", "b", "a") }, picked: "m3"},
		"no arbiter, even if newest and marked": {change: func(w *world) {
			w.ControlPlane.Spec.Arbiter = &controlplanev1.ArbiterSpec{}
			w.arbiter(4)
			w.mark(4)
		}, picked: "m3"},
		"Machine that never joined": {
			change: func(w *world) { w.make(5); w.Machines[4].CreationTimestamp.Time = noon.Add(time.Hour) },
			picked: "m5",
		},
		"member down": {change: func(w *world) { w.down(1) }, picked: "m1"},
		"learner":     {change: func(w *world) { w.etcd.Members[3].Learner = true }, picked: "m3"},
		"marked, another member down": {
			change: func(w *world) { w.mark(2); w.down(1) }, picked: "m2", reasons: []string{
				controlplanev1.EtcdQuorumAtRiskReason,
				controlplanev1.WaitingForEtcdReason,
			},
		},
		"members unknown": {change: func(w *world) { w.etcd.Members = nil }, reasons: []string{controlplanev1.EtcdUnknownReason}},
		"quorum lost":     {change: func(w *world) { w.etcd.Lost = true }, reasons: []string{controlplanev1.EtcdQuorumAtRiskReason}},
		"topology not supported": {
			change:  func(w *world) { w.etcd.Topology = "DualReplica" },
			reasons: []string{controlplanev1.EtcdTopologyNotSupportedReason},
		},
		"being upgraded": {
			change: func(w *world) { w.Workload.Upgrading = "4.20.1" }, picked: "m4",
			reasons: []string{controlplanev1.UpgradeInProgressReason},
		},
		"upgrade requested": {
			change: func(w *world) {
				w.Workload.Rollout = &workload.Rollout{Requested: workload.Update{Image: "image"}, Pending: true}
			},
			picked: "m4", reasons: []string{controlplanev1.UpgradeInProgressReason},
		},
		"upgrade refused": {
			change: func(w *world) {
				w.Workload.Rollout = &workload.Rollout{Requested: workload.Update{Version: "4.20.1"}, Pending: true, Refused: "no"}
			},
			picked: "m4",
		},
		"state of upgrades unknown": {
			change: func(w *world) { w.Workload.UnreadSince = noon }, picked: "m4",
			reasons: []string{controlplanev1.HealthUnknownReason},
		},
		"restart with another configuration": {
			change: func(w *world) { w.etcd.Nodes[1].Configuring = true }, picked: "m4",
			reasons: []string{controlplanev1.WaitingForEtcdReason},
		},
		"all blockers": {
			change: func(w *world) {
				w.Workload.Upgrading, w.etcd.Nodes[0].Configuring, w.etcd.Operators[1].Progressing = "4.20.1", true, true
				w.etcd.Members = append(w.etcd.Members, workload.EtcdMember{ID: 9, Name: "n9", Learner: true, Hosts: []string{"n9"}})
				w.etcd.Nodes = append(w.etcd.Nodes, workload.ControlPlaneNode{
					Node:      workload.Node{Name: "n9", ProviderID: "metal3://n9"},
					Addresses: []string{"n9"},
				})
				w.mark(4)
			},
			picked: "m4",
			reasons: []string{
				controlplanev1.WaitingForEtcdReason, controlplanev1.WaitingForEtcdReason,
				controlplanev1.WaitingForEtcdReason,
				controlplanev1.UpgradeInProgressReason,
			},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(5, 3)
			if tc.change != nil {
				tc.change(w)
			}
			situation, err := removal.Of(&w.Facts)
			g.Expect(err).NotTo(HaveOccurred())
			picked, against := Down(&w.Facts, situation, &w.etcd)
			g.Expect(picked).To(Equal(tc.picked))
			g.Expect(reasons(against)).To(Equal(tc.reasons))
		})
	}
}

func TestUp(t *testing.T) {
	for situation, tc := range map[string]struct {
		hosts           int
		change          func(w *world)
		reason, message string
	}{
		"healthy":              {hosts: 3},
		"one of three missing": {hosts: 2},
		"one of three missing, operators roll out": {hosts: 2, change: func(w *world) {
			w.etcd.Operators[0].Progressing,
				w.etcd.Operators[1].Degraded = true, true
		}},
		"one of three missing, being upgraded": {hosts: 2, change: func(w *world) {
			w.Workload.Upgrading,
				w.etcd.Nodes[0].Configuring = "4.20.1", true
		}},
		"three, operators roll out": {
			hosts: 3, change: func(w *world) { w.etcd.Operators[0].Progressing = true }, reason: controlplanev1.WaitingForEtcdReason,
			message: "ClusterOperator etcd is progressing",
		},
		"three, revision rolled out": {
			hosts: 3, change: func(w *world) { w.etcd.LatestRevision = 8 }, reason: controlplanev1.WaitingForEtcdReason,
			message: "revision 8",
		},
		"three, restart with another configuration": {
			hosts: 3, change: func(w *world) { w.etcd.Nodes[2].Configuring = true }, reason: controlplanev1.WaitingForEtcdReason,
			message: "Node n2 gets another machine configuration",
		},
		"three, being upgraded": {
			hosts: 3, change: func(w *world) { w.Workload.Upgrading = "4.20.1" }, reason: controlplanev1.UpgradeInProgressReason,
			message: "upgraded to 4.20.1",
		},
		"member down": {
			hosts: 2, change: func(w *world) { w.down(1) }, reason: controlplanev1.EtcdQuorumAtRiskReason,
			message: "n1 does not answer, and OpenShift adds no other member",
		},
		"member joining": {
			hosts: 2, change: func(w *world) { w.etcd.Members[1].Learner = true }, reason: controlplanev1.WaitingForEtcdReason,
			message: "n1 is joining",
		},
		"etcd full": {
			hosts: 2, change: func(w *world) { w.etcd.Alarms = []workload.EtcdAlarm{{Kind: workload.EtcdNoSpace, Member: 1}} },
			reason: controlplanev1.EtcdAlarmReason, message: "alarm NOSPACE",
		},
		"members unknown": {
			hosts: 2, change: func(w *world) { w.etcd.Members = nil }, reason: controlplanev1.EtcdUnknownReason,
			message: "no etcd member answers",
		},
		"single node": {
			hosts: 1, change: func(w *world) { w.etcd.Topology = configv1.SingleReplicaTopologyMode },
			reason: controlplanev1.EtcdTopologyNotSupportedReason, message: "single-node cluster",
		},
		"fencing topology": {
			hosts: 2, change: func(w *world) { w.etcd.Topology = configv1.DualReplicaTopologyMode },
			reason: controlplanev1.EtcdTopologyNotSupportedReason, message: "DualReplica",
		},
		"arbiter": {hosts: 2, change: func(w *world) { w.etcd.Topology = configv1.HighlyAvailableArbiterMode }},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(tc.hosts, 5)
			if tc.change != nil {
				tc.change(w)
			}
			against := Up(&w.Facts, &w.etcd)
			if tc.reason == "" {
				g.Expect(against).To(BeEmpty())
				return
			}
			g.Expect(against).To(HaveLen(1))
			g.Expect(against[0].Reason).To(Equal(tc.reason))
			g.Expect(against[0].Message).To(ContainSubstring(tc.message))
		})
	}
}

func TestTooMany(t *testing.T) {
	for situation, tc := range map[string]struct {
		arbiters []int
		without  bool
		wanted   []string
	}{
		"without arbiter: all":    {without: true, wanted: []string{"m0", "m1", "m2", "m3"}},
		"unwanted arbiter exists": {without: true, arbiters: []int{2}, wanted: []string{"m2"}},
		"one arbiter: masters":    {arbiters: []int{3}, wanted: []string{"m0", "m1", "m2"}},
		"two arbiters: arbiters":  {arbiters: []int{0, 3}, wanted: []string{"m0", "m3"}},
	} {
		t.Run(situation, func(t *testing.T) {
			w := newWorld(4, 3)
			if !tc.without {
				w.ControlPlane.Spec.Arbiter = &controlplanev1.ArbiterSpec{}
			}
			for _, i := range tc.arbiters {
				w.arbiter(i)
			}
			w.Machines[1].Labels = map[string]string{bootstrapv1.ArbiterLabel: "by hand"}
			var names []string
			for _, m := range TooMany(&w.Facts) {
				names = append(names, m.Name)
			}
			NewWithT(t).Expect(names).To(Equal(tc.wanted))
		})
	}
}

func TestMissing(t *testing.T) {
	g := NewWithT(t)
	for _, tc := range []struct{ replicas, machines, stuck, missing int }{
		{3, 3, 0, 0},
		{3, 2, 0, 1},
		{3, 0, 0, 3},
		{3, 5, 0, 0},
		{3, 3, 1, 1},
		{3, 2, 1, 2}, // one stuck Machine counts as missing
		{3, 4, 1, 0},
		{3, 4, 2, 0},
		{3, 3, 3, 1},
		{3, 5, 5, 0},
		{5, 5, 2, 1}, // at most one surplus
	} {
		g.Expect(Missing(tc.replicas, tc.machines, tc.stuck)).To(Equal(tc.missing), "%+v", tc)
	}
}
