package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestAssistedServiceIsUnavailable: after a minute without response, conditions name assisted-service as the
// cause, without polling.
func TestAssistedServiceIsUnavailable(t *testing.T) {
	for situation, tc := range map[string]struct {
		begin     func(t *testing.T) *world
		condition string
		status    metav1.ConditionStatus
		before    string
		respond   func(w *world)
		after     string
	}{
		"makes no image": {
			begin: func(t *testing.T) *world {
				t.Helper()
				w := newWorld(t, values(lab())...)
				w.reconcile()
				infraEnv := read(w, "m", &aiv1beta1.InfraEnv{})
				w.change(infraEnv, func() { infraEnv.CreationTimestamp = metav1.NewTime(w.clock) })
				return w
			},
			condition: bootstrapv1.DiscoveryImageReadyCondition, status: metav1.ConditionFalse, before: bootstrapv1.WaitingForDiscoveryImageReason,
			respond: func(w *world) { w.makeImage() },
		},
		"does not bind": {
			begin: func(t *testing.T) *world {
				t.Helper()
				w := booted(t)
				w.create(discovered("a", "m", bootMAC))
				w.reconcile()
				return w
			},
			condition: bootstrapv1.HostBoundCondition, status: metav1.ConditionFalse, before: bootstrapv1.HostBindingReason,
			respond: func(w *world) { w.enter("a", "binding") }, after: bootstrapv1.HostBindingReason,
		},
		"does not delete the Agent": {
			begin: func(t *testing.T) *world {
				t.Helper()
				w := joined(t)
				w.remove(read(w, "m", &clusterv1.Machine{}))
				w.remove(w.config())
				w.reconcile()
				return w
			},
			condition: bootstrapv1.DeletingCondition, status: metav1.ConditionTrue, before: bootstrapv1.DeletingAgentReason,
			respond: func(w *world) { w.removeFinalizers("a", &aiv1beta1.Agent{}) }, after: bootstrapv1.DeletingInfraEnvReason,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			w := tc.begin(t)
			w.lasts(tc.condition, tc.status, tc.before)
			w.Expect(w.reconcile().RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", assisted.ResponseTimeout)))
			w.clock = w.clock.Add(assisted.ResponseTimeout)
			w.Expect(w.reconcile().RequeueAfter).To(BeZero(), "no polling")
			w.wants(tc.condition, tc.status, bootstrapv1.AssistedServiceNotRespondingReason)
			w.Expect(w.message(tc.condition)).To(And(ContainSubstring("Check that it and its database run"), ContainSubstring("since 20")))
			before := w.writes
			w.reconcile()
			w.Expect(w.writes).To(Equal(before), "no write while assisted-service is unavailable")
			tc.respond(w)
			w.reconcile()
			if tc.after != "" {
				w.wants(tc.condition, tc.status, tc.after)
			} else {
				w.wants(tc.condition, metav1.ConditionTrue, tc.condition)
			}
		})
	}
}

// TestServiceThatReportsBlockedDeletion: a reported error counts as a response.
func TestServiceThatReportsBlockedDeletion(t *testing.T) {
	w := joined(t)
	w.remove(read(w, "m", &clusterv1.Machine{}))
	w.remove(w.config())
	w.reconcile()
	agent := w.agent("a")
	w.change(agent, func() {
		agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
			Type:   aiv1beta1.CleanupCondition,
			Status: corev1.ConditionFalse, Message: "the cluster does not answer",
		})
	})
	w.clock = w.clock.Add(time.Hour)
	w.reconcile()
	w.wants(bootstrapv1.DeletingCondition, metav1.ConditionTrue, bootstrapv1.DeletingAgentReason)
}

// TestServiceThatBindsAndUnbinds: after a response the time without response is counted again.
func TestServiceThatBindsAndUnbinds(t *testing.T) {
	w := booted(t)
	w.create(discovered("a", "m", bootMAC))
	for _, state := range []string{"known-unbound", "binding", "known-unbound"} {
		w.enter("a", state)
		w.reconcile()
		w.clock = w.clock.Add(assisted.ResponseTimeout * 3 / 4)
	}
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.HostBindingReason)
	w.clock = w.clock.Add(assisted.ResponseTimeout / 4)
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.AssistedServiceNotRespondingReason)
	reported := w.message(bootstrapv1.HostBoundCondition)
	w.reconcile()
	w.Expect(w.message(bootstrapv1.HostBoundCondition)).To(Equal(reported))

	w.warnings()
	w.restart()
	w.reconcile()
	w.wants(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.AssistedServiceNotRespondingReason)
	w.Expect(w.warnings()).To(BeEmpty(), "a restart does not report the problem again")
}
