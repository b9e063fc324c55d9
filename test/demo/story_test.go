package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func TestChangesArePrintedOnce(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	shown := map[string]string{}
	tree := item{
		title: "Cluster ha", state: "Provisioning",
		children: []item{{title: "Machine ha-1", state: "Pending", waits: "WaitingForHost"}},
	}

	changes(&out, shown, tree)
	g.Expect(out.String()).To(MatchRegexp(`^\S+ Cluster ha: Provisioning\n\S+ Machine ha-1: Pending \[WaitingForHost\]\n$`))

	out.Reset()
	changes(&out, shown, tree)
	g.Expect(out.String()).To(BeEmpty(), "nothing changed")

	tree.children[0].state, tree.children[0].done = "Running", true
	changes(&out, shown, tree)
	g.Expect(out.String()).To(MatchRegexp(`^\S+ Machine ha-1: Running\n$`), "what is done waits for nothing")
}

func TestEtcdMembersAreShown(t *testing.T) {
	g := NewWithT(t)
	tree := treeOf(&snapshot{State: &lab.State{}, etcd: []lab.EtcdMember{{Name: "n0", Voter: true}, {Name: "n1"}, {}}})
	g.Expect(tree.children[0].children).To(Equal([]item{
		{title: "etcd members", state: "n0, n1 (does not vote yet), one that was never started (does not vote yet)"},
	}))
	g.Expect(treeOf(&snapshot{State: &lab.State{}}).children[0].children).To(BeEmpty(), "it has none of its own")
}

func TestAReplacementIsDoneWhenAllHasSettled(t *testing.T) {
	g := NewWithT(t)
	gone := lab.Machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "old"}}}
	s := &snapshot{State: &lab.State{Cluster: &clusterv1.Cluster{}}, settled: true}
	g.Expect(s.without(gone)).To(BeFalse(), "it is not available")
	s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionTrue}}
	g.Expect(s.without(gone)).To(BeTrue())
	s.settled = false
	g.Expect(s.without(gone)).To(BeFalse(), "etcd has not settled")
	gone.Status.Phase, gone.Status.NodeRef.Name = string(clusterv1.MachinePhaseRunning), "n0"
	s.settled, s.Wanted, s.Machines = true, 1, []lab.Machine{gone}
	g.Expect(s.without(gone)).To(BeFalse(), "it is still there")
}

func TestMessagesAreShort(t *testing.T) {
	g := NewWithT(t)
	g.Expect(waits("45%: Installation in progress; events: http://service/events; logs: http://service/logs")).
		To(Equal("45%: Installation in progress"))
	g.Expect(clusterWaits("* RemoteConnectionProbe: not established\n* ControlPlaneAvailable: not installed\n* "+
		"WorkersAvailable:\n  * MachineDeployment ha: 0 available")).
		To(Equal("RemoteConnectionProbe: not established"), "other items show the rest")
}

func TestUpgradeIsShownUntilItCompletes(t *testing.T) {
	g := NewWithT(t)
	s := &snapshot{
		State:   &lab.State{Cluster: &clusterv1.Cluster{}, ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}},
		settled: true,
	}
	s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionTrue}}
	s.ControlPlane.Status.DistributionVersion = "4.20.8"
	worker := &clusterv1.Machine{Spec: clusterv1.MachineSpec{Version: "v1.33.5"}}
	worker.Status.Phase, worker.Status.NodeRef.Name = string(clusterv1.MachinePhaseRunning), "worker"
	s.Machines, s.Wanted = []lab.Machine{{Machine: worker}}, 1
	s.ControlPlane.Status.Conditions = []metav1.Condition{
		{Type: controlplanev1.AvailableCondition, Status: metav1.ConditionTrue},
		{Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionTrue, Reason: "RollingOut", Message: "waiting on etcd"},
	}
	g.Expect(s.runs("4.20.8", "v1.33.5")).To(BeFalse(), "it is still rolled out")
	shown := treeOf(s).children[0]
	g.Expect(shown.done).To(BeFalse())
	g.Expect(shown.waits).To(Equal("RollingOut: waiting on etcd"))
	s.ControlPlane.Status.Conditions[1].Status = metav1.ConditionFalse
	g.Expect(s.runs("4.20.8", "v1.33.5")).To(BeTrue())
	g.Expect(s.runs("4.20.9", "v1.33.5")).To(BeFalse())
	g.Expect(s.runs("4.20.8", "v1.33.6")).To(BeFalse(), "a worker does not have its version")
	g.Expect(treeOf(s).children[0].done).To(BeTrue())
}
