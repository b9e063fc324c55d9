package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// scale sets the desired number of Machines.
func (h *hub) scale(replicas int32) {
	h.t.Helper()
	cp := h.controlPlane()
	cp.Spec.Replicas = &replicas
	h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
}

// newScaledHub returns a hub with an installed control plane of five Machines.
func newScaledHub(t *testing.T) *hub {
	t.Helper()
	h := newInstalledHub(t)
	h.scale(5)
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(5))
	for i, m := range h.machines() {
		if !m.Status.NodeRef.IsDefined() {
			h.join(m.Name, fmt.Sprintf("n1%d", i))
		}
	}
	h.reconcile()
	h.etcds.inspections = 0
	return h
}

// join makes the host of a Machine a member of etcd.
func (h *hub) join(machine, node string) {
	h.t.Helper()
	m := &clusterv1.Machine{}
	h.get(machine, m)
	m.Spec.ProviderID = "metal3://" + node
	h.Expect(h.Update(h.t.Context(), m)).To(Succeed())
	m.Status.NodeRef.Name = node
	h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
	h.workloads.facts.Nodes = append(h.workloads.facts.Nodes, nodeOf(node))
	h.etcds.Members = append(h.etcds.Members, workload.EtcdMember{ID: uint64(len(h.etcds.Members) + 1), Name: node, Hosts: []string{node}})
	h.etcds.Nodes = append(h.etcds.Nodes, workload.ControlPlaneNode{Node: nodeOf(node), Addresses: []string{node}})
	h.etcds.Revisions = append(h.etcds.Revisions, workload.Revision{Node: node, Current: 7})
}

// deleted returns the Machines that are being deleted.
func (h *hub) deleted() []string {
	h.t.Helper()
	var deleted []string
	for _, m := range h.machines() {
		if !m.DeletionTimestamp.IsZero() {
			deleted = append(deleted, m.Name)
		}
	}
	return deleted
}

func TestInstalledControlPlaneIsScaledDownOneByOne(t *testing.T) {
	h := newScaledHub(t)
	h.keepMachines()
	marked := h.machines()[1]
	marked.Annotations[clusterv1.DeleteMachineAnnotation] = ""
	h.Expect(h.Update(t.Context(), &marked)).To(Succeed())

	h.scale(3)
	h.reconcile()
	h.Expect(h.deleted()).To(Equal([]string{marked.Name}), "the Machine that the user marked")
	h.reconcile()
	h.Expect(h.deleted()).To(HaveLen(1), "one after the other")

	conditions.Set(&marked, metav1.Condition{
		Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason,
	})
	m := &clusterv1.Machine{}
	h.get(marked.Name, m)
	m.Status.Conditions = marked.Status.Conditions
	h.Expect(h.Status().Update(t.Context(), m)).To(Succeed())
	h.reconcile()
	h.Expect(h.etcds.Members).To(HaveLen(4))
	h.Expect(h.deleted()).To(HaveLen(1), "its host is already being deprovisioned")
	h.finishMachine(marked.Name)
	h.reconcile()
	h.reconcile()
	h.Expect(h.deleted()).To(HaveLen(1))
	h.Expect(h.machines()).To(HaveLen(4))
	h.Expect(h.deleted()).NotTo(ContainElement(marked.Name))
	h.Expect(
		conditions.Get(h.controlPlane(), controlplanev1.ScalingDownCondition).Message,
	).To(ContainSubstring("scaling down from 4 to 3 Machines"))
}

func TestBlockersOfScaleDown(t *testing.T) {
	for situation, tc := range map[string]struct {
		change          func(h *hub)
		reason, message string
		watched         bool
	}{
		"a member is down whose Machine is not the next to delete": {
			func(h *hub) {
				marked := h.machines()[1]
				marked.Annotations[clusterv1.DeleteMachineAnnotation] = ""
				h.Expect(h.Update(h.t.Context(), &marked)).To(Succeed())
				h.etcds.Members[3].Problem = "does not answer"
			}, controlplanev1.EtcdQuorumAtRiskReason, "scaling down from 5 to 3 Machines: Machine c1-", false,
		},
		"all reasons": {
			func(h *hub) { h.etcds.Operators[1].Progressing, h.workloads.facts.Upgrading = true, "4.20.1" },
			controlplanev1.WaitingForEtcdReason,
			"ClusterOperator kube-apiserver is progressing: waiting until it has settled; the cluster is being upgraded to 4.20.1",
			false,
		},
		"the cluster is unreachable": {
			func(h *hub) { h.workloads.facts.Connected = false }, controlplanev1.ConnectionDownReason, "see the condition Available", true,
		},
		"the cluster is unreachable, which is not observed yet": {
			func(h *hub) { h.etcds.observing = cluster.ErrNotConnected }, controlplanev1.ConnectionDownReason, "does not answer", true,
		},
		"assisted-service treats it as not installed": {
			func(h *hub) { h.setState("insufficient", hiveext.ClusterInstallationNotStartedReason, 0) },
			controlplanev1.ReregisteredReason,
			"Delete no object of this hub",
			true,
		},
		"a host that was released is not cleaned up": {
			func(h *hub) {
				cp := h.controlPlane()
				cp.Annotations = map[string]string{controlplanev1.ReleasedHostsAnnotation: `[{"node":"n0","uid":"n0"}]`}
				h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
				h.workloads.facts.UnreadSince = time.Now()
			}, clusterv1.ScalingDownReason, "scaling down from 5 to 3 Machines: see the condition HostsReleasing", true,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newScaledHub(t)
			h.keepMachines()
			h.scale(3)
			tc.change(h)
			result := h.reconcile()
			h.Expect(h.deleted()).To(BeEmpty())
			c := conditions.Get(h.controlPlane(), controlplanev1.ScalingDownCondition)
			h.Expect(c.Status).To(Equal(metav1.ConditionTrue))
			h.Expect(c.Reason).To(Equal(tc.reason))
			h.Expect(c.Message).To(ContainSubstring(tc.message))
			if tc.watched {
				h.Expect(result.RequeueAfter).To(Or(BeZero(), BeNumerically(">", time.Minute)))
			} else {
				h.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.InitialDelay)))
			}
		})
	}
}

// staleList answers as an API server on which a Machine is being deleted, while the cache lags.
type staleList struct{ client.Reader }

func (s staleList) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := s.Reader.List(ctx, list, opts...)
	if machines, ok := list.(*clusterv1.MachineList); ok && err == nil {
		machines.Items[0].DeletionTimestamp = ptr.To(metav1.Now())
	}
	return err
}

func TestNoSecondMachineIsDeletedWhileTheCacheLags(t *testing.T) {
	h := newScaledHub(t)
	h.keepMachines()
	h.worker("worker-1", "", "", nil) // a worker replaces no control-plane Machine
	h.scale(4)
	live := h.live.Reader
	h.live.Reader = staleList{live}
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically(">", 0))
	h.Expect(h.deleted()).To(BeEmpty())
	h.live.Reader = live
	h.reconcile()
	h.Expect(h.deleted()).To(HaveLen(1))
}

func TestMachineWithoutHookIsNotDeleted(t *testing.T) {
	h := newScaledHub(t)
	h.keepMachines()
	for _, m := range h.machines() {
		delete(m.Annotations, controlplanev1.EtcdMemberHookAnnotation)
		h.Expect(h.Update(t.Context(), &m)).To(Succeed())
	}
	h.scale(4)
	h.reconcile()
	h.Expect(h.deleted()).To(BeEmpty())
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(ContainSubstring("does not have the etcd hook " +
		"yet"))
}

func TestSurplusMachineIsDeletedAtOnceBeforeTheInstallation(t *testing.T) {
	h := newHub(t, world(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = ptr.To[int32](5) })...).withTime()
	h.reconcile()
	h.keepMachines()
	h.Expect(h.machines()).To(HaveLen(5))
	h.scale(3)
	h.reconcile()
	h.Expect(h.deleted()).To(HaveLen(1))
	h.Expect(h.reconcile().RequeueAfter).To(
		BeNumerically(">", time.Minute), "the watch reports the end of the deletion, and then the next Machine is deleted",
	)
	h.Expect(h.deleted()).To(HaveLen(1))
	h.Expect(h.etcds.inspections).To(BeZero())
}

func TestNoHostIsRemovedDuringTheInstallation(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.reconcile()
	h.keepMachines()
	h.setState("installing", "InstallationInProgress", 40)
	h.reconcile()
	h.scale(1)
	h.reconcile()
	h.Expect(h.deleted()).To(BeEmpty())
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(ContainSubstring("set spec.replicas back to 3"))
}

// The deletion of a Cluster deletes its workers first.
func TestDeletedClusterIsNotScaledDown(t *testing.T) {
	h := newScaledHub(t)
	h.keepMachines()
	h.deleteCluster()
	h.scale(3)
	h.reconcile()
	h.Expect(h.deleted()).To(BeEmpty())
	h.Expect(h.etcds.inspections).To(BeZero())
}

func TestAllWaitingMachinesAreReported(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.scale(4)
	h.etcds.Members[2].Problem = "does not answer"
	going := h.deleteMachine(0)
	for count := 1; count <= 3; count++ {
		h.reconcile()
		h.Expect(h.etcds.inspections).To(Equal(count), "one inspection for all")
		h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
			ContainSubstring("the host of Machine " + going + " is not touched: without it etcd would have no quorum"),
		)
		h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.ScalingUpCondition)).To(
			ContainSubstring("n2 does not answer, and OpenShift adds no other member"),
		)
		now = now.Add(etcdgate.Interval)
	}
	h.etcds.Members = h.etcds.Members[:2] // a user removed the member by hand
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(4), "another Machine is created although one waits for it")
	h.Expect(h.condition(controlplanev1.HostsReleasingCondition).Reason).To(Equal(controlplanev1.WaitingForReplacementReason))
}

func TestEtcdIsNotInspectedForMachinesThatCannotBeCreated(t *testing.T) {
	h := newInstalledHub(t)
	h.Expect(h.Delete(t.Context(), infraTemplate())).To(Succeed())
	h.scale(5)
	h.etcds.inspections = 0
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(
		conditions.GetReason(h.controlPlane(), controlplanev1.MachinesCreatedCondition),
	).To(Equal(controlplanev1.InfraTemplateMissingReason))
}

func TestMachineIsCreatedWhenEtcdCanAddItsHost(t *testing.T) {
	h := newInstalledHub(t)
	h.scale(5)
	h.etcds.Members[1].Problem = "does not answer"
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", etcdgate.InitialDelay)))
	h.Expect(h.machines()).To(HaveLen(3))
	for _, condition := range []string{controlplanev1.ScalingUpCondition, controlplanev1.MachinesCreatedCondition} {
		c := conditions.Get(h.controlPlane(), condition)
		h.Expect(c.Reason).To(Equal(controlplanev1.EtcdQuorumAtRiskReason), condition)
		h.Expect(c.Message).To(ContainSubstring("n1 does not answer, and OpenShift adds no other member until then"), condition)
	}
	h.Expect(conditions.IsFalse(h.controlPlane(), controlplanev1.ScalingDownCondition)).To(BeTrue(), "no host is removed")

	h.workloads.facts.Connected = false
	h.reconcile()
	h.Expect(conditions.GetReason(h.controlPlane(), controlplanev1.ScalingUpCondition)).To(Equal(controlplanev1.ConnectionDownReason))

	h.workloads.facts.Connected = true
	h.etcds.Members[1].Problem = ""
	*h.r.gate = *etcdgate.New(h.etcds, h.clock)
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(5))
}
