package hostconfig

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// TestMomentaryWaitsAreReportedWhenTheyLast covers a status whose write is delayed.
func TestMomentaryWaitsAreReportedWhenTheyLast(t *testing.T) {
	w := newWorld(t, values(lab())...)
	w.reconcile()
	w.makeImage()
	w.reconcile()
	reports := w.reports
	w.create(bareMetalHost()) // only another message
	w.Expect(w.reconcile().RequeueAfter).To(Equal(reconcile.DeferralPeriod))
	w.Expect(w.reports).To(Equal(reports))
	w.clock = w.clock.Add(reconcile.DeferralPeriod - time.Second)
	agent := discovered("a", "m", bootMAC)
	agent.Status.Inventory = aiv1beta1.HostInventory{}
	w.create(agent) // another wait follows: the time is not reset
	w.Expect(w.reconcile().RequeueAfter).To(Equal(time.Second))
	w.Expect(w.reports).To(Equal(reports))
	w.clock = w.clock.Add(time.Second)
	w.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", time.Minute), "the Agent is touched if it does not change")
	w.Expect(w.reports).To(Equal(reports + 1))
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostIdentityReason)
	w.Expect(meta.FindStatusCondition(w.config().Status.Conditions, bootstrapv1.HostIdentifiedCondition).Message).To(
		Equal("waiting for Agent a to report its hardware, which identifies BareMetalHost lab/rack1-u7"))
}

// TestWaitThatPassesIsNotReported covers a status that returns to the written one.
func TestWaitThatPassesIsNotReported(t *testing.T) {
	w := booted(t)
	w.reconcile()
	w.lasts(bootstrapv1.ReadyCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	reports := w.reports
	agent := discovered("a", "m", bootMAC)
	agent.Status.Inventory = aiv1beta1.HostInventory{}
	w.create(agent)
	w.reconcile()
	w.remove(agent)
	w.Expect(w.reconcile().RequeueAfter).To(BeZero(), "no requeue")
	w.clock = w.clock.Add(reconcile.DeferralPeriod)
	w.reconcile()
	w.Expect(w.reports).To(Equal(reports), "nothing is reported")
}

func TestUrgent(t *testing.T) {
	condition := func(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
	}
	waiting := condition(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBindingReason, "")
	invalid := condition(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason, "a")
	for name, tc := range map[string]struct {
		before, after []metav1.Condition
		change        func(s *scope.Scope)
		urgent        bool
	}{
		"the first report of a wait":    {after: []metav1.Condition{waiting}},
		"the first report of a problem": {after: []metav1.Condition{invalid}, urgent: true},
		"one wait after the other": {
			before: []metav1.Condition{waiting},
			after: []metav1.Condition{condition(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostValidationReason,
				"")},
		},
		"a step has ended": {
			before: []metav1.Condition{waiting},
			after:  []metav1.Condition{condition(bootstrapv1.HostBoundCondition, metav1.ConditionTrue, bootstrapv1.HostBoundReason, "")},
		},
		"the installation proceeds": {change: func(s *scope.Scope) { s.Status.InstallationProgress = "Rebooting" }},
		"the host is installed": {
			after:  []metav1.Condition{condition(bootstrapv1.HostInstalledCondition, metav1.ConditionTrue, bootstrapv1.HostInstalledReason, "")},
			urgent: true,
		},
		"a problem is fixed": {before: []metav1.Condition{invalid}, after: []metav1.Condition{waiting}, urgent: true},
		"a problem has another message": {
			before: []metav1.Condition{invalid},
			after: []metav1.Condition{condition(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.InvalidConfigurationReason,
				"b")},
		},
		"the deletion begins, and waits": {
			before: []metav1.Condition{condition(bootstrapv1.DeletingCondition, metav1.ConditionFalse, bootstrapv1.NotDeletingReason, "")},
			after:  []metav1.Condition{condition(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.WaitingForMachineReason, "")},
			urgent: true,
		},
		"no longer paused": {
			before: []metav1.Condition{condition(clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason, "")},
			after:  []metav1.Condition{condition(clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason, "")},
			urgent: true,
		},
		"bootstrap data for Cluster API": {change: func(s *scope.Scope) { s.Status.DataSecretName = "m" }, urgent: true},
		"bootstrap data exists": {
			change: func(s *scope.Scope) { s.Status.Initialization.DataSecretCreated = ptr.To(true) },
			urgent: true,
		},
		"the Agent is known": {
			change: func(s *scope.Scope) { s.Status.AgentRef = &corev1.LocalObjectReference{Name: "a"} },
			urgent: true,
		},
		"the spec was edited": {change: func(s *scope.Scope) {
			s.Config.Status.ObservedGeneration, s.Status.ObservedGeneration = 1, 2
		}, urgent: true},
		"the first observation of the spec": {change: func(s *scope.Scope) { s.Status.ObservedGeneration = 1 }},
		"a warning": {change: func(s *scope.Scope) {
			s.StatusEvent(corev1.EventTypeWarning,
				bootstrapv1.HostRefusedReason, "")
		}, urgent: true},
		"a normal event": {change: func(s *scope.Scope) {
			s.StatusEvent(corev1.EventTypeNormal,
				bootstrapv1.HostApprovedReason, "")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scope.New(&facts.Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}})
			s.Config.Status.Conditions, s.Status.Conditions = tc.before, tc.after
			if tc.change != nil {
				tc.change(s)
			}
			NewWithT(t).Expect(urgent(s)).To(Equal(tc.urgent))
		})
	}
}

// TestEventOfActionSurvivesFailedReport: the next reconcile does not approve the Agent again.
func TestEventOfActionSurvivesFailedReport(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.cache.Client = interceptor.NewClient(w.cached(), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("no answer")
		},
	})
	config := w.config()
	w.change(config, func() { config.Generation++ }) // an urgent report
	_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.config())})
	w.Expect(err).To(MatchError(ContainSubstring("no answer")))
	w.Expect(w.event()).To(HavePrefix("Normal HostApproved"))
}

// TestEventOfStatusWaitsForTheStatus: until the status is written, each reconcile finds the state again.
func TestEventOfStatusWaitsForTheStatus(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.registerWithCluster("a", "known")
	w.reconcile()
	for w.event() != "" {
		continue
	}
	for w.reconciler.deferred.UrgentDelay(client.ObjectKeyFromObject(w.config())) == 0 {
		continue
	}
	w.enter("a", "error")
	for range 2 {
		w.Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", 0))
		w.Expect(w.event()).To(BeEmpty(), "the status is not written")
	}
	w.clock = w.clock.Add(time.Minute)
	for range 2 {
		w.reconcile()
	}
	w.Expect(w.event()).To(HavePrefix("Warning HostInstallationFailed"))
	w.Expect(w.event()).To(BeEmpty())
}

// TestConditionsSurviveAPanic: stages that no phase reached are not reported as lost.
func TestConditionsSurviveAPanic(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionTrue, bootstrapv1.HostIdentifiedReason)
	config := w.config()
	w.change(config, func() {
		config.Generation++     // an urgent report
		config.Finalizers = nil // the first phase adds it
	})
	w.cache.Client = interceptor.NewClient(w.cached(), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			panic("a defect")
		},
	})
	w.Expect(func() {
		_, _ = w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
	}).To(PanicWith("a defect"))
	w.Expect(w.config().Status.ObservedGeneration).To(Equal(config.Generation), "the status was written")
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionTrue, bootstrapv1.HostIdentifiedReason)
}
