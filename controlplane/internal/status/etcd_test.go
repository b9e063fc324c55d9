package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestEtcdClusterHealthy(t *testing.T) {
	degraded := func(lasts time.Duration) func(*facts.Facts) {
		return func(f *facts.Facts) {
			f.Workload.Etcd.DegradedSince, f.Workload.Etcd.Degraded = noon.Add(-lasts), "2 of 3 members are available, n1 is unhealthy"
		}
	}
	const t1 = controlplanev1.EtcdClusterHealthyCondition
	for situation, tc := range map[string]struct {
		change          func(*facts.Facts)
		status          metav1.ConditionStatus
		reason, message string
		again           time.Duration
		seen            *workload.Etcd
	}{
		"healthy": {status: metav1.ConditionTrue, reason: controlplanev1.EtcdClusterHealthyReason},
		"degraded for a moment: members restart": {
			change: degraded(time.Minute), status: metav1.ConditionTrue, reason: controlplanev1.EtcdClusterHealthyReason, again: 4 * time.Minute,
		},
		"degraded for long: the operator names the member": {
			change:  degraded(5 * time.Minute),
			status:  metav1.ConditionFalse,
			reason:  controlplanev1.EtcdClusterNotHealthyReason,
			message: "n1 is unhealthy",
		},
		"degraded while hosts restart for an upgrade": {
			change: func(f *facts.Facts) {
				degraded(59 * time.Minute)(f)
				f.Workload.Restarts = []string{"Node n0 gets another machine configuration"}
				f.ControlPlane.Spec.Replicas = ptr.To[int32](3)
			},
			status: metav1.ConditionTrue, reason: controlplanev1.EtcdClusterHealthyReason, again: time.Minute,
		},
		"degraded for longer than the restart takes": {
			change: func(f *facts.Facts) {
				degraded(time.Hour)(f)
				f.Workload.Restarts = []string{"Node n0 gets another machine configuration"}
				f.ControlPlane.Spec.Replicas = ptr.To[int32](3)
			},
			status: metav1.ConditionFalse, reason: controlplanev1.EtcdClusterNotHealthyReason, message: "n1 is unhealthy",
		},
		"the only host restarts for an upgrade, and the cluster does not answer": {
			change: func(f *facts.Facts) {
				f.Workload = workload.State{LastSuccess: noon.Add(-10 * time.Minute), Restarts: []string{"Node n0 gets another machine configuration"}}
				f.ControlPlane.Spec.Replicas = ptr.To[int32](1)
				f.ControlPlane.Status.Conditions = []metav1.Condition{
					{Type: t1, Status: metav1.ConditionTrue, Reason: controlplanev1.EtcdClusterHealthyReason},
				}
			}, status: metav1.ConditionUnknown, reason: controlplanev1.ControlPlaneRestartingReason,
		},
		"not available": {
			change:  func(f *facts.Facts) { f.Workload.Etcd.Available = false },
			status:  metav1.ConditionFalse,
			reason:  controlplanev1.EtcdClusterNotHealthyReason,
			message: "is not available",
		},
		"a server came back whose Machine is deleted": {
			change: func(f *facts.Facts) {
				f.Workload.Nodes = append(f.Workload.Nodes, workload.Node{
					Name: "n9", ControlPlane: true, ProviderID: "metal3://n9",
				}, workload.Node{Name: "worker"})
			}, status: metav1.ConditionFalse,
			reason:  controlplanev1.NodeWithoutMachineReason,
			message: "control-plane Node has no Machine and may be a member of etcd: n9.",
		},
		"a Machine with a host waits for its Node, which may be this one": {
			change: func(f *facts.Facts) {
				f.Machines = append(f.Machines, &clusterv1.Machine{
					ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1.MachineSpec{ProviderID: "metal3://n1"},
				})
				f.Workload.Nodes = append(f.Workload.Nodes, workload.Node{Name: "n1", ControlPlane: true})
			}, status: metav1.ConditionTrue, reason: controlplanev1.EtcdClusterHealthyReason,
		},
		"a Machine waits for a free host while a repaired server came back": {
			change: func(f *facts.Facts) {
				f.Machines = append(f.Machines, &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m1"}})
				f.Workload.Nodes = append(f.Workload.Nodes, workload.Node{Name: "n1", ControlPlane: true})
			}, status: metav1.ConditionFalse, reason: controlplanev1.NodeWithoutMachineReason, message: "n1",
		},
		"the providerID of the Node names a Machine": {
			change: func(f *facts.Facts) {
				f.Machines[0].Status.NodeRef.Name, f.Workload.Nodes[0].ProviderID = "other", "metal3://n0"
			}, status: metav1.ConditionTrue, reason: controlplanev1.EtcdClusterHealthyReason,
		},
		"a single node is degraded: no advice to delete its Machine": {
			change:  degraded(time.Hour),
			status:  metav1.ConditionFalse,
			reason:  controlplanev1.EtcdClusterNotHealthyReason,
			message: "and repair the host",
		},
		"one of three is degraded: its Machine can be replaced": {
			change: func(f *facts.Facts) {
				degraded(time.Hour)(f)
				f.Machines = append(f.Machines, f.Machines[0], f.Machines[0])
			}, status: metav1.ConditionFalse, reason: controlplanev1.EtcdClusterNotHealthyReason, message: "which wipes the disks of that host",
		},
		"a member remains after its host, Node and Machine": {
			change: degraded(time.Hour),
			seen: &workload.Etcd{
				Topology: configv1.HighlyAvailableTopologyMode,
				Members:  []workload.EtcdMember{{Name: "n0"}, {Name: "n7", Problem: "does not answer"}, {Learner: true}},
			},
			status:  metav1.ConditionFalse,
			reason:  controlplanev1.EtcdClusterNotHealthyReason,
			message: "etcd member has no Node and no Machine: n7. If the host does not exist any more, remove the member",
		},
		"members in disagreement are not named": {
			change: degraded(time.Hour),
			seen:   &workload.Etcd{Topology: configv1.HighlyAvailableTopologyMode, Members: []workload.EtcdMember{{Name: "n7"}}, Doubt: "doubt"},
			status: metav1.ConditionFalse, reason: controlplanev1.EtcdClusterNotHealthyReason, message: "n1 is unhealthy. See the conditions",
		},
		"degraded, and a server came back too": {
			change: func(f *facts.Facts) {
				degraded(time.Hour)(f)
				f.Workload.Nodes = append(f.Workload.Nodes, workload.Node{Name: "n9", ControlPlane: true})
			}, status: metav1.ConditionFalse,
			reason:  controlplanev1.EtcdClusterNotHealthyReason,
			message: "control-plane Node has no Machine and may be a member of etcd: n9.",
		},
		"two nodes with fencing: Pacemaker runs etcd": {
			change: func(f *facts.Facts) {
				degraded(time.Hour)(f)
				f.Machines, f.ControlPlane.Spec.Fencing = append(f.Machines, f.Machines[0]), &controlplanev1.FencingSpec{}
			}, status: metav1.ConditionFalse, reason: controlplanev1.EtcdClusterNotHealthyReason, message: "and repair the host",
		},
		"just installed, operator not available yet": {
			change: func(f *facts.Facts) {
				f.Workload.Etcd.Available = false
				f.Workload.Unhealthy = []string{"ClusterOperator etcd is not available"}
				f.ControlPlane.Status.Conditions = []metav1.Condition{
					{Type: controlplanev1.AvailableCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.WaitingForHealthyClusterReason},
					{Type: controlplanev1.InstalledCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)},
				}
			}, status: metav1.ConditionUnknown, reason: controlplanev1.WaitingForHealthyClusterReason, message: "not available yet",
		},
		"the operator is missing": {
			change:  func(f *facts.Facts) { f.Workload.Etcd = workload.EtcdOperator{} },
			status:  metav1.ConditionUnknown,
			reason:  controlplanev1.WaitingForHealthyClusterReason,
			message: "has no ClusterOperator",
		},
		"not connected yet, never reported: waits": {
			change: func(f *facts.Facts) { f.Workload = workload.State{LastSuccess: noon.Add(-time.Second)} },
			status: metav1.ConditionUnknown,
			reason: controlplanev1.WaitingForAPIServerReason,
		},
		"the connection ends for a moment: condition unchanged": {
			change: func(f *facts.Facts) {
				f.Workload = workload.State{LastSuccess: noon.Add(-time.Second)}
				f.ControlPlane.Status.Conditions = []metav1.Condition{
					{Type: t1, Status: metav1.ConditionTrue, Reason: controlplanev1.EtcdClusterHealthyReason},
				}
			}, status: metav1.ConditionTrue, reason: controlplanev1.EtcdClusterHealthyReason,
		},
		"the cluster does not answer": {
			change:  func(f *facts.Facts) { f.Workload = workload.State{LastSuccess: noon.Add(-time.Hour)} },
			status:  metav1.ConditionUnknown,
			reason:  controlplanev1.ConnectionDownReason,
			message: "has not answered since",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := runningEtcd()
			if tc.change != nil {
				tc.change(f)
			}
			if tc.reason == controlplanev1.NodeWithoutMachineReason {
				f.ControlPlane.Status.Conditions = []metav1.Condition{
					{
						Type:               t1,
						Status:             metav1.ConditionUnknown,
						Reason:             controlplanev1.WaitingForNodeDeletionReason,
						LastTransitionTime: metav1.NewTime(noon.Add(-nodeGrace)),
					},
				}
			}
			v := viewOf(f)
			v.Phase, v.Now = controlplanev1.InstallationInstalled, noon
			v.Found.Etcd = tc.seen
			f.ControlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
			cp := f.ControlPlane.DeepCopy()
			v.composeEtcd(cp)
			g.Expect(*conditions.Get(cp, t1)).To(
				And(HaveField("Status", tc.status), HaveField("Reason", tc.reason), HaveField("Message", ContainSubstring(tc.message))),
			)
			g.Expect(v.untilDegradedCounts()).To(Equal(tc.again))
			if tc.status == metav1.ConditionFalse {
				g.Expect(Urgent(tc.reason)).To(BeTrue(), "an alert of severity critical fires for it")
			}
		})
	}
}

// TestNodeWithoutMachineCountsAfterGracePeriod: Cluster API deletes the Node just before its Machine, and the
// watches lag.
func TestNodeWithoutMachineCountsAfterGracePeriod(t *testing.T) {
	const t1 = controlplanev1.EtcdClusterHealthyCondition
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for situation, tc := range map[string]struct {
		before  metav1.ConditionStatus // empty: none
		since   time.Duration
		deleted bool
		status  metav1.ConditionStatus
		reason  string
		again   time.Duration
	}{
		"never reported": {status: unknown, reason: controlplanev1.WaitingForNodeDeletionReason, again: nodeGrace},
		"healthy for long": {
			before: yes, since: time.Hour, status: unknown, reason: controlplanev1.WaitingForNodeDeletionReason, again: nodeGrace,
		},
		"seen a moment ago": {
			before: unknown,
			since:  nodeGrace - time.Second,
			status: unknown,
			reason: controlplanev1.WaitingForNodeDeletionReason,
			again:  time.Second,
		},
		"seen a minute ago":               {before: unknown, since: nodeGrace, status: no, reason: controlplanev1.NodeWithoutMachineReason},
		"reported: the manager restarted": {before: no, status: no, reason: controlplanev1.NodeWithoutMachineReason},
		"the Node was deleted meanwhile": {
			before: unknown, since: time.Second, deleted: true, status: yes, reason: controlplanev1.EtcdClusterHealthyReason,
		},
		"every Node has a Machine": {before: yes, since: time.Hour, deleted: true, status: yes, reason: controlplanev1.EtcdClusterHealthyReason},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := runningEtcd()
			if !tc.deleted {
				f.Workload.Nodes = append(f.Workload.Nodes, workload.Node{Name: "n9", ControlPlane: true})
			}
			if tc.before != "" {
				f.ControlPlane.Status.Conditions = []metav1.Condition{
					{Type: t1, Status: tc.before, Reason: "Before", LastTransitionTime: metav1.NewTime(noon.Add(-tc.since))},
				}
			}
			v := viewOf(f)
			v.Phase, v.Now = controlplanev1.InstallationInstalled, noon
			cp := f.ControlPlane.DeepCopy()
			v.composeEtcd(cp)
			g.Expect(*conditions.Get(cp, t1)).To(And(HaveField("Status", tc.status), HaveField("Reason", tc.reason)))
			g.Expect(v.untilNodeCounts()).To(Equal(tc.again))
		})
	}
}
