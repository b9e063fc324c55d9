package controlplane

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// makeStuck deletes a Machine, releases its host, and acts as Cluster API while the infrastructure is not
// deleted. The kubelet of the host does not report.
func (h *hub) makeStuck(i int) string {
	h.t.Helper()
	name := h.deleteMachine(i)
	h.reconcile()
	h.Expect(h.held()).NotTo(ContainElement(name))
	m := &clusterv1.Machine{}
	h.get(name, m)
	conditions.Set(m, metav1.Condition{
		Type:   clusterv1.MachineDeletingCondition,
		Status: metav1.ConditionTrue,
		Reason: clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason,
	})
	h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
	h.etcds.Node(m.Status.NodeRef.Name).Silent = true
	return name
}

// newTimedHub returns an installed hub whose time is now.
func newTimedHub(t *testing.T, now *time.Time) *hub {
	t.Helper()
	h := newInstalledHub(t)
	*now = h.r.Clock.Now()
	h.clock.now = func() time.Time { return *now }
	return h
}

func TestStuckMachineGetsASuccessor(t *testing.T) {
	var now time.Time
	h := newTimedHub(t, &now)
	now = now.Add(2 * time.Hour) // the release follows the deletion
	going := h.makeStuck(0)
	now = now.Add(29 * time.Minute)
	h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 2*time.Minute)))
	h.Expect(h.machines()).To(HaveLen(3), "the host may still be deprovisioned")

	h.etcds.Node("n0").Silent = false
	now = now.Add(time.Hour)
	h.reconcile()
	h.endDeferral()
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3), "the server still runs")
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)).To(
		And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("Unplug the server"))),
	)
	down := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	h.Expect(down).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", controlplanev1.InfrastructureDeletionStuckReason)))
	h.Expect(down.Message).To(
		And(
			ContainSubstring("Machine "+going+" is stuck"),
			ContainSubstring("unplug the server"),
			ContainSubstring("bootstrap.cluster.x-k8s.io/allow-deletion=true"),
		),
	)

	h.etcds.Node("n0").Silent = true
	now = now.Add(time.Hour)
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(4))
	h.Expect(h.etcds.Members).To(HaveLen(2), "the stuck host is no member")
	for range 3 { // a manager without memory does not create more either
		h.r = New(h.r.Options)
		h.withTime()
		h.clock.now = func() time.Time { return now }
		h.reconcile()
		h.Expect(h.machines()).To(HaveLen(4))
	}
	h.endDeferral()
	h.reconcile()
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.MachinesCreatedCondition)).To(BeTrue())

	h.finishMachine(going)
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(3))
	for _, m := range h.machines() {
		h.Expect(m.DeletionTimestamp).To(BeNil(), "and no Machine is surplus afterwards")
	}
}

func TestStuckMachineGetsNoSuccessorWithoutEvidence(t *testing.T) {
	for situation, change := range map[string]func(h *hub, going string){
		"its hook was removed by hand, so that nothing proves that its host left etcd": func(h *hub, _ string) {
			cp := h.controlPlane()
			delete(cp.Annotations, controlplanev1.ReleasedHostsAnnotation)
			h.Expect(h.Update(h.t.Context(), cp)).To(Succeed())
		},
		"its member could not be removed, and its hook was removed by hand": func(h *hub, going string) {
			h.annotate(controlplanev1.ReleasedHostsAnnotation, recordOf(going))
		},
		"the record is invalid": func(h *hub, _ string) { h.annotate(controlplanev1.ReleasedHostsAnnotation, "{") },
		"its host rejoined etcd": func(h *hub, _ string) {
			h.etcds.Members = append(h.etcds.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: []string{"n0"}, Problem: "does not answer"})
			h.etcds.changing = errors.New("refused")
		},
		"its Node was deleted and registers again, so that its server may run": func(h *hub, _ string) {
			n0 := h.etcds.Node("n0")
			n0.UID, n0.ProviderID, n0.HostUID, n0.Silent = "again", "", "", false
			h.etcds.Members = append(h.etcds.Members, workload.EtcdMember{ID: 9, Name: "n0", Hosts: n0.Addresses})
			h.workloads.facts.Nodes[0] = n0.Node
		},
		"a member is down":            func(h *hub, _ string) { h.etcds.Members[0].Problem = "does not answer" },
		"the cluster does not answer": func(h *hub, _ string) { h.workloads.facts.Connected = false },
		"etcd has lost its quorum":    func(h *hub, _ string) { h.etcds.Lost = true },
		"the whole Cluster is deleted": func(h *hub, _ string) {
			c := newCluster()
			h.get(c.Name, c)
			c.Finalizers = []string{"keep"}
			h.Expect(h.Update(h.t.Context(), c)).To(Succeed())
			h.Expect(h.Delete(h.t.Context(), c)).To(Succeed())
		},
		"the hosts do not leave quickly": func(h *hub, going string) {
			m := &clusterv1.Machine{}
			h.get(going, m)
			conditions.Set(m, metav1.Condition{
				Type:   clusterv1.MachineDeletingCondition,
				Status: metav1.ConditionTrue,
				Reason: clusterv1.MachineDeletingWaitingForBootstrapDeletionReason,
			})
			h.Expect(h.Status().Update(h.t.Context(), m)).To(Succeed())
		},
	} {
		t.Run(situation, func(t *testing.T) {
			var now time.Time
			h := newTimedHub(t, &now)
			going := h.makeStuck(0)
			change(h, going)
			now = now.Add(time.Hour)
			h.reconcile()
			h.reconcile()
			h.Expect(h.machines()).To(HaveLen(3))
		})
	}
}
