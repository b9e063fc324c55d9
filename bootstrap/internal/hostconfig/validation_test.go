package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/binding"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestPendingValidationsAreReported covers a host whose state lists no validation.
func TestPendingValidationsAreReported(t *testing.T) {
	w := refusedSince(t, binding.Settling)
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostValidationReason)
	w.Expect(w.message(bootstrapv1.HostBoundCondition)).To(ContainSubstring("Missing inventory"))
}

// TestValidationsAreReportedWithAnyClock: the clock of assisted-service may be ahead of the manager's clock,
// which may also be set back after the host was rejected.
func TestValidationsAreReportedWithAnyClock(t *testing.T) {
	for situation, tc := range map[string]struct {
		ago      time.Duration
		reported bool
	}{
		"a moment ago": {0, false},
		"in a moment, by a clock that is a little ahead": {-binding.Settling, false},
		"in an hour":  {-time.Hour, true},
		"in a year":   {-365 * 24 * time.Hour, true},
		"a year ago":  {365 * 24 * time.Hour, true},
		"an hour ago": {time.Hour, true},
	} {
		t.Run(situation, func(t *testing.T) {
			w := refusedSince(t, tc.ago)
			w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostValidationReason)
			message := Equal("waiting for assisted-service to validate host rack1-u7")
			if tc.reported {
				message = And(HavePrefix("assisted-service keeps host rack1-u7 in state "), ContainSubstring("Missing inventory"))
			}
			w.Expect(w.message(bootstrapv1.HostBoundCondition)).To(message)
		})
	}
}

// refusedSince returns a world whose host assisted-service rejects since the given time, by the clock of
// assisted-service.
func refusedSince(t *testing.T, ago time.Duration) *world {
	t.Helper()
	w := booted(t)
	agent := discovered("a", "m", bootMAC)
	agent.Status.DebugInfo = aiv1beta1.DebugInfo{
		State:     "insufficient-unbound",
		StateInfo: "Host does not meet the minimum hardware requirements: ",
	}
	agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
		Type: aiv1beta1.ValidatedCondition, Status: corev1.ConditionFalse, Message: "The agent's validations are failing: Missing inventory",
		LastTransitionTime: metav1.NewTime(w.clock.Add(-ago)),
	})
	w.create(agent)
	w.reconcile()
	return w
}
