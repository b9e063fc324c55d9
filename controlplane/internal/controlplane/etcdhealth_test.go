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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// members are what the Machines say of their members, in their order.
func (h *hub) members() []metav1.ConditionStatus {
	h.t.Helper()
	var said []metav1.ConditionStatus
	for _, m := range h.machines() {
		if c := conditions.Get(&m, controlplanev1.EtcdMemberHealthyCondition); c != nil {
			said = append(said, c.Status)
		}
	}
	return said
}

// losesMember makes etcd lose the member of n1, which its operator reports.
func (h *hub) losesMember(since time.Time) {
	h.etcds.Members[1].Problem, h.etcds.Condemned = "does not answer", "2 of 3 members are available, n1 is unhealthy"
	h.workloads.facts.Etcd.DegradedSince, h.workloads.facts.Etcd.Degraded = since, h.etcds.Condemned
}

// newEtcdHub is one whose members were seen once. now is its time.
func newEtcdHub(t *testing.T, now *time.Time) *hub {
	t.Helper()
	h := newInstalledHub(t)
	*now = h.r.now()
	h.r.now = func() time.Time { return *now }
	h.r.started = *now
	h.workloads.facts.Etcd = facts.EtcdOperator{Known: true, Available: true}
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue}))
	h.etcds.inspections = 0
	return h
}

func TestALostEtcdMemberIsReported(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "the operator is watched")

	h.losesMember(now)
	now = now.Add(time.Minute)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(BeTrue(), "members restart now and then")
	h.reconcile()
	h.Expect(h.etcds.inspections).To(Equal(1), "once a minute")

	now = now.Add(4 * time.Minute)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(And(HaveField("Status", no), HaveField("Message", ContainSubstring("n1 is unhealthy"))))

	h.etcds.Members[1].Problem, h.etcds.Condemned, h.workloads.facts.Etcd = "", "", facts.EtcdOperator{Known: true, Available: true}
	now = now.Add(inspectionInterval) // the operator has settled: that is not waited for
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, yes, yes}))
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(BeTrue())
	up := &clusterv1.Machine{}
	h.get(h.machines()[1].Name, up)
	h.Expect(conditions.IsTrue(up, clusterv1.MachineUpToDateCondition)).To(BeTrue(), "other conditions stay")
}

func TestALostEtcdMemberIsNotReportedWithoutEvidence(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for situation, lose := range map[string]func(h *hub){
		"the connection ends":     func(h *hub) { h.workloads.facts.Connected = false },
		"members cannot be read":  func(h *hub) { h.etcds.observing = errors.New("no answer") },
		"etcd loses its quorum":   func(h *hub) { h.etcds.Lost = true },
		"the operator is missing": func(h *hub) { h.workloads.facts.Etcd = facts.EtcdOperator{} },
	} {
		t.Run(situation, func(t *testing.T) {
			var now time.Time
			h := newEtcdHub(t, &now)
			now = now.Add(time.Hour)
			h.losesMember(now)
			h.reconcile()
			h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
			lose(h)

			now = now.Add(facts.GracePeriod - time.Second)
			h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)), "looks again in time")
			h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}), "it may pass")
			now = now.Add(time.Second)
			h.reconcile()
			h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, unknown, yes}), "a MachineHealthCheck acts upon False")
		})
	}
}

func TestAManagerThatStartsKeepsTheConditionsOfMembers(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.losesMember(now)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))

	now = now.Add(time.Hour)
	h.r.started, h.r.inspections = now, newInspections(h.r.now)
	connected := h.workloads.facts
	h.workloads.facts = facts.Workload{}
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}), "not connected yet")
	h.workloads.facts = connected
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
}

func TestAHostThatIsNoMemberYetIsNotReportedAsHealthy(t *testing.T) {
	const yes, unknown = metav1.ConditionTrue, metav1.ConditionUnknown
	h := newInstalledHub(t)
	now := h.r.now()
	h.r.now = func() time.Time { return now }
	h.workloads.facts.Etcd = facts.EtcdOperator{Known: true, Available: true}
	all := h.etcds.Members
	h.etcds.Members = all[:2]
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, yes, unknown}))
	h.etcds.inspections = 0
	for range 60 {
		now = now.Add(time.Minute)
		h.reconcile()
	}
	h.Expect(h.etcds.inspections).To(BeNumerically("<", 12), "less and less often")

	h.etcds.Members = all
	now = now.Add(10 * time.Minute)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, yes, yes}))
}

// The inspections of all clusters share a few slots: those of a degraded site can take minutes.
func TestALostEtcdMemberDoesNotOutliveItsEvidence(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.losesMember(now)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	h.Expect(h.r.inspections.free.TryAcquire(maxInspections)).To(BeTrue())

	now = now.Add(facts.GracePeriod - time.Second)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	now = now.Add(time.Second)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, unknown, yes}))
}

func TestALostEtcdMemberIsReadEachMinuteWhileItsOperatorIsNotDegraded(t *testing.T) {
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.losesMember(now)
	h.reconcile()
	h.workloads.facts.Etcd = facts.EtcdOperator{Known: true, Available: true, Progressing: true}
	h.etcds.inspections = 0
	for range 20 {
		now = now.Add(time.Minute)
		h.reconcile()
	}
	h.Expect(h.members()).To(ContainElement(metav1.ConditionFalse))
	h.Expect(h.etcds.inspections).To(Equal(20))
}

// A MachineHealthCheck counts its timeout from the last transition: a member that is half dead alternates between two problems.
func TestAnotherProblemOfAnEtcdMemberIsNoTransition(t *testing.T) {
	var now time.Time
	h := newEtcdHub(t, &now)
	transition := func() time.Time {
		m := h.machines()[1]
		return conditions.GetLastTransitionTime(&m, controlplanev1.EtcdMemberHealthyCondition).Time
	}
	now = now.Add(time.Hour)
	h.losesMember(now)
	h.reconcile()
	lost := transition()
	h.Expect(lost).To(BeTemporally("~", now, time.Second))

	now = now.Add(time.Minute)
	h.etcds.Members[1].Problem = "does not serve"
	h.reconcile()
	m := h.machines()[1]
	h.Expect(conditions.GetMessage(&m, controlplanev1.EtcdMemberHealthyCondition)).To(ContainSubstring("does not serve"))
	h.Expect(transition()).To(Equal(lost))

	now = now.Add(time.Minute)
	h.etcds.Members[1].Problem = ""
	h.reconcile()
	h.Expect(transition()).To(BeTemporally("~", now, time.Second))
}
