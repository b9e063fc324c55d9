package controlplane

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// members returns the status of the condition EtcdMemberHealthy of each Machine, in their order.
func (h *hub) members() []metav1.ConditionStatus {
	h.t.Helper()
	var statuses []metav1.ConditionStatus
	for _, m := range h.machines() {
		if c := conditions.Get(&m, controlplanev1.EtcdMemberHealthyCondition); c != nil {
			statuses = append(statuses, c.Status)
		}
	}
	return statuses
}

// loseMember makes etcd lose the member of n1, which its operator reports.
func (h *hub) loseMember(since time.Time) {
	h.etcds.Members[1].Problem, h.etcds.Condemned = "does not answer", "2 of 3 members are available, n1 is unhealthy"
	h.workloads.facts.Etcd.DegradedSince, h.workloads.facts.Etcd.Degraded = since, h.etcds.Condemned
}

// newEtcdHub returns a hub whose members were inspected once. now is its time.
func newEtcdHub(t *testing.T, now *time.Time) *hub {
	t.Helper()
	h := newInstalledHub(t)
	*now = h.r.Clock.Now()
	h.clock.now = func() time.Time { return *now }
	h.restartAt(*now)
	h.workloads.facts.Etcd = workload.EtcdOperator{Known: true, Available: true}
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue}))
	h.etcds.inspections = 0
	return h
}

func TestLostEtcdMemberIsReported(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.reconcile()
	h.Expect(h.etcds.inspections).To(BeZero(), "the operator is watched")

	h.loseMember(now)
	now = now.Add(time.Minute)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(BeTrue(), "members restart now and then")
	h.reconcile()
	h.Expect(h.etcds.inspections).To(Equal(1), "once a minute")

	now = now.Add(4 * time.Minute)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	h.Expect(conditions.Get(h.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(
		And(HaveField("Status", no), HaveField("Message", ContainSubstring("n1 is unhealthy"))),
	)

	h.etcds.Members[1].Problem, h.etcds.Condemned, h.workloads.facts.Etcd = "", "", workload.EtcdOperator{Known: true, Available: true}
	now = now.Add(etcdgate.Interval) // the inspection does not wait until the operator has settled
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, yes, yes}))
	h.Expect(conditions.IsTrue(h.controlPlane(), controlplanev1.EtcdClusterHealthyCondition)).To(BeTrue())
	up := &clusterv1.Machine{}
	h.get(h.machines()[1].Name, up)
	h.Expect(conditions.IsTrue(up, clusterv1.MachineUpToDateCondition)).To(BeTrue(), "the other conditions stay")
}

func TestLostEtcdMemberIsNotReportedWithoutEvidence(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for situation, lose := range map[string]func(h *hub){
		"the connection ends":     func(h *hub) { h.workloads.facts.Connected = false },
		"members cannot be read":  func(h *hub) { h.etcds.observing = errors.New("no answer") },
		"etcd loses its quorum":   func(h *hub) { h.etcds.Lost = true },
		"the operator is missing": func(h *hub) { h.workloads.facts.Etcd = workload.EtcdOperator{} },
	} {
		t.Run(situation, func(t *testing.T) {
			var now time.Time
			h := newEtcdHub(t, &now)
			now = now.Add(time.Hour)
			h.loseMember(now)
			h.reconcile()
			h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
			lose(h)

			now = now.Add(workload.GracePeriod - time.Second)
			h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)), "the next inspection is in time")
			h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}), "the cause may be transient")
			now = now.Add(time.Second)
			h.reconcile()
			h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, unknown, yes}), "a MachineHealthCheck acts upon False")
		})
	}
}

func TestStartingManagerKeepsTheConditionsOfMembers(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.loseMember(now)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))

	now = now.Add(time.Hour)
	h.restart(now)
	connected := h.workloads.facts
	h.workloads.facts = workload.State{}
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}), "not connected yet")
	h.workloads.facts = connected
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
}

func TestHostThatIsNotYetAMemberIsNotReportedAsHealthy(t *testing.T) {
	const yes, unknown = metav1.ConditionTrue, metav1.ConditionUnknown
	h := newInstalledHub(t)
	now := h.r.Clock.Now()
	h.clock.now = func() time.Time { return now }
	h.workloads.facts.Etcd = workload.EtcdOperator{Known: true, Available: true}
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
func TestReportOfLostEtcdMemberEndsWithItsEvidence(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.loseMember(now)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	h.occupyGate()

	now = now.Add(workload.GracePeriod - time.Second)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, no, yes}))
	now = now.Add(time.Second)
	h.reconcile()
	h.Expect(h.members()).To(Equal([]metav1.ConditionStatus{yes, unknown, yes}))
}

func TestLostEtcdMemberIsReadEachMinuteWhileItsOperatorIsNotDegraded(t *testing.T) {
	var now time.Time
	h := newEtcdHub(t, &now)
	now = now.Add(time.Hour)
	h.loseMember(now)
	h.reconcile()
	h.workloads.facts.Etcd = workload.EtcdOperator{Known: true, Available: true, Progressing: true}
	h.etcds.inspections = 0
	for range 20 {
		now = now.Add(time.Minute)
		h.reconcile()
	}
	h.Expect(h.members()).To(ContainElement(metav1.ConditionFalse))
	h.Expect(h.etcds.inspections).To(Equal(20))
}

// A MachineHealthCheck counts its timeout from the last transition. A member that half works alternates
// between two problems.
func TestAnotherProblemOfEtcdMemberIsNoTransition(t *testing.T) {
	var now time.Time
	h := newEtcdHub(t, &now)
	transition := func() time.Time {
		m := h.machines()[1]
		return conditions.GetLastTransitionTime(&m, controlplanev1.EtcdMemberHealthyCondition).Time
	}
	now = now.Add(time.Hour)
	h.loseMember(now)
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

// A new cluster, and a demonstration cluster, may lack the objects from which etcd is read.
func TestObjectsOfEtcdThatDoNotExistAreNoError(t *testing.T) {
	etcds := schema.GroupResource{Group: "operator.openshift.io", Resource: "etcds"}
	for situation, tc := range map[string]struct {
		err   error
		level string
	}{
		"the resource does not exist": {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "get", etcds, "cluster", "404 page not found", 0, true), `"level"`,
		},
		"the object does not exist": {fmt.Errorf("cannot read it: %w", apierrors.NewNotFound(etcds, "cluster")), `"level"`},
		"the kind is not known":     {&meta.NoKindMatchError{}, `"level"`},
		"it may not be read":        {apierrors.NewForbidden(etcds, "cluster", errors.New("no")), `"error"`},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			now := h.clock.Now()
			h.clock.now = func() time.Time { return now }
			h.restartAt(now)
			h.workloads.facts.Etcd = workload.EtcdOperator{Known: true, Available: true}
			h.etcds.observing = tc.err
			var logged []string
			ctx := ctrl.LoggerInto(t.Context(), funcr.NewJSON(func(line string) { logged = append(logged, line) }, funcr.Options{}))
			for range 3 {
				_, err := h.r.Reconcile(ctx, h.request())
				h.Expect(err).NotTo(HaveOccurred())
				now = now.Add(etcdgate.LongestMemberPause)
			}
			h.Expect(logged).To(HaveExactElements(And(ContainSubstring("EtcdMemberHealthy"), ContainSubstring(tc.level))))
			h.Expect(h.members()).To(BeEmpty())

			h.etcds.inspections = 0
			now = now.Add(-time.Second)
			h.reconcile()
			h.Expect(h.etcds.inspections).To(BeZero(), "the pace is low")
			h.etcds.observing = nil
			now = now.Add(time.Second)
			h.reconcile()
			h.Expect(h.members()).To(HaveLen(3), "and the inspections continue")
		})
	}
}
