package controlplane

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// newWaitingHub returns a hub on which a Machine waits for etcd, and its time.
func newWaitingHub(t *testing.T) (*hub, *time.Time) {
	t.Helper()
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	h.etcds.Members[2].Problem = "does not answer"
	h.deleteMachine(0)
	return h, &now
}

func TestEtcdIsInspectedLessOftenWhileNothingChanges(t *testing.T) {
	h, now := newWaitingHub(t)
	for _, after := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute} {
		before := h.etcds.inspections
		h.Expect(h.reconcile().RequeueAfter).To(Equal(after))
		h.Expect(h.etcds.inspections).To(Equal(before + 1))
		h.Expect(after == etcdgate.InitialDelay || after >= reconcile.LowPriorityDelay).To(BeTrue(), "a longer delay blocks no urgent reconcile")
		*now = now.Add(after)
	}
	h.etcds.Members[2].Problem = "does not serve"
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", etcdgate.InitialDelay), "a member changed")
	h.etcds.Members[2].Problem = "does not answer"
	*now = now.Add(etcdgate.InitialDelay)
	h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", etcdgate.InitialDelay), "the member changed again")
}

func TestEventsTriggerInspectionsAtLimitedRate(t *testing.T) {
	h, now := newWaitingHub(t)
	h.reconcile()
	message := conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	for range 3 {
		*now = now.Add(etcdgate.Interval / 4)
		h.Expect(h.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<", etcdgate.Interval)))
	}
	h.Expect(h.etcds.inspections).To(Equal(1))
	h.endDeferral()
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(Equal(message), "the message stays")
	*now = now.Add(etcdgate.Interval / 4)
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.InitialDelay-etcdgate.Interval), "an event does not postpone the next inspection")
	h.Expect(h.etcds.inspections).To(Equal(2))

	h.etcds.Members[2].Problem = ""
	*now = now.Add(etcdgate.Interval)
	h.reconcile()
	h.Expect(h.held()).To(HaveLen(2))
}

func TestNextStepFollowsAtOnce(t *testing.T) {
	h, _ := newWaitingHub(t)
	h.etcds.Members[2].Problem = ""
	h.reconcile()
	h.Expect(h.etcds.calls).To(Equal([]string{"lead n1 instead of n0", "remove n0 through n1"}))
	going := h.machines()[0].Name
	h.finishMachine(going)
	h.deleteMachine(0)
	h.reconcile()
	h.Expect(h.etcds.calls).To(ContainElement("delete Secrets of n0"))
	before := h.etcds.inspections
	h.endDeferral()
	h.reconcile()
	h.Expect(h.etcds.inspections).To(Equal(before+1), "without another inspection")
	h.Expect(h.condition(controlplanev1.HostsReleasingCondition).Reason).To(Equal(controlplanev1.WaitingForReplacementReason))
}

func TestNumberOfConcurrentInspectionsIsLimited(t *testing.T) {
	h, now := newWaitingHub(t)
	release := h.occupyGate()
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.Interval + time.Millisecond))
	h.Expect(h.etcds.inspections).To(BeZero())
	h.Expect(conditions.GetMessage(h.controlPlane(), controlplanev1.HostsReleasingCondition)).To(
		ContainSubstring("the etcd of many other clusters is being inspected"),
	)
	release()
	*now = now.Add(etcdgate.Interval)
	h.reconcile()
	h.Expect(h.etcds.inspections).To(Equal(1))
	h.occupyGate() // each inspection has ended
}

// A leader that reports the handover but stays leader is not requested to hand over all the time.
func TestLeaderThatDoesNotHandOverIsReported(t *testing.T) {
	h, now := newWaitingHub(t)
	h.etcds.Members[2].Problem, h.etcds.stubborn = "", true
	for i, after := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		h.Expect(h.reconcile().RequeueAfter).To(Equal(after))
		h.Expect(h.etcds.calls).To(HaveLen(i + 1))
		*now = now.Add(after)
	}
	c := conditions.Get(h.controlPlane(), controlplanev1.HostsReleasingCondition)
	h.Expect(c.Reason).To(Equal(controlplanev1.WaitingForEtcdReason))
	h.Expect(c.Message).To(ContainSubstring("led by its member n0, which was requested to hand over to n1"))
	h.etcds.stubborn = false
	h.reconcile()
	h.Expect(h.etcds.Members).To(HaveLen(2))
}

// Errors contain port numbers that differ each time.
func TestRepeatedFailureIsLoggedOnce(t *testing.T) {
	h, now := newWaitingHub(t)
	var logged []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	for i := range 3 {
		h.etcds.observing = fmt.Errorf("127.0.0.1:%d: refused", i)
		_, err := h.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
		h.Expect(err).NotTo(HaveOccurred())
		*now = now.Add(etcdgate.MaxDelay)
	}
	h.Expect(h.etcds.inspections).To(Equal(3))
	h.Expect(logged).To(HaveExactElements(ContainSubstring("127.0.0.1:0")))
	h.etcds.observing = context.DeadlineExceeded
	_, err := h.r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(logged).To(HaveLen(2), "a different error is logged")
}

func TestBackgroundCheckWaitsForItsTurn(t *testing.T) {
	h := newInstalledHub(t)
	now := time.Now()
	h.clock.now = func() time.Time { return now }
	m := &clusterv1.Machine{}
	h.get(h.deleteMachine(0), m)
	h.setDeletingReason(m, clusterv1.MachineDeletingDrainingNodeReason)
	release := h.occupyGate()
	h.Expect(h.reconcile().RequeueAfter).To(Equal(etcdgate.Interval + time.Millisecond))
	h.Expect(h.etcds.serveChecks).To(BeZero())
	release()
	now = now.Add(2 * etcdgate.Interval)
	h.reconcile()
	h.Expect(h.etcds.serveChecks).To(Equal(1))
	h.occupyGate() // each inspection has ended
}

// All clusters of a hub wait at the same time after the start of a manager that reports members for the first
// time.
func TestInspectionsOfMembersWaitForTheirTurn(t *testing.T) {
	for situation, tc := range map[string]struct {
		etcd  workload.EtcdOperator
		after time.Duration
	}{
		"etcd is healthy: waiting Machines come first": {workload.EtcdOperator{Known: true, Available: true}, etcdgate.DeferrableTurn},
		"the operator is degraded":                     {workload.EtcdOperator{Known: true, DegradedSince: time.Now()}, etcdgate.Interval},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newInstalledHub(t)
			h.workloads.facts.Etcd = tc.etcd
			h.occupyGate()
			s := h.gather()
			s.Found.Machines = s.Machines
			h.etcds.inspections = 0
			h.r.gate.InspectMembers(t.Context(), s)
			h.Expect(s.Again.Delay()).To(Equal(tc.after + time.Millisecond))
			h.Expect(h.etcds.inspections).To(BeZero(), "etcd was not inspected")
		})
	}
}
