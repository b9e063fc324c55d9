package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/report"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

func TestChangesArePrintedOnce(t *testing.T) {
	g := NewWithT(t)
	var out strings.Builder
	shown := map[string]string{}
	tree := report.Item{
		Title: "Cluster ha", Text: "Provisioning", Age: "1s",
		Children: []report.Item{{Title: "Machine ha-1", Text: "Pending", Problem: "WaitingForHost"}},
	}

	changes(&out, shown, tree)
	g.Expect(out.String()).To(MatchRegexp(`^\S+ Cluster ha: Provisioning\n\S+ Machine ha-1: Pending \[WaitingForHost\]\n$`))

	out.Reset()
	tree.Age = "2s"
	changes(&out, shown, tree)
	g.Expect(out.String()).To(BeEmpty(), "only time has passed")

	tree.Children[0].Text, tree.Children[0].Problem = "Running", ""
	changes(&out, shown, tree)
	g.Expect(out.String()).To(MatchRegexp(`^\S+ Machine ha-1: Running\n$`))
}

func TestAReplacementIsDoneWhenAllHasSettled(t *testing.T) {
	g := NewWithT(t)
	gone := lab.Machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{UID: "old"}}}
	s := &observation{State: &lab.State{Cluster: &clusterv1.Cluster{}}, settled: true}
	g.Expect(s.without(gone)).To(BeFalse(), "it is not available")
	s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterAvailableCondition, Status: metav1.ConditionTrue}}
	g.Expect(s.without(gone)).To(BeTrue())
	s.settled = false
	g.Expect(s.without(gone)).To(BeFalse(), "etcd has not settled")
	gone.Status.Phase, gone.Status.NodeRef.Name = string(clusterv1.MachinePhaseRunning), "n0"
	s.settled, s.Wanted, s.Machines = true, 1, []lab.Machine{gone}
	g.Expect(s.without(gone)).To(BeFalse(), "it is still there")
}

func TestUpgradeIsDoneWhenAllHasSettled(t *testing.T) {
	g := NewWithT(t)
	s := &observation{
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
	s.ControlPlane.Status.Conditions[1].Status = metav1.ConditionFalse
	g.Expect(s.runs("4.20.8", "v1.33.5")).To(BeTrue())
	g.Expect(s.runs("4.20.9", "v1.33.5")).To(BeFalse())
	g.Expect(s.runs("4.20.8", "v1.33.6")).To(BeFalse(), "a worker does not have its version")
}
