package config

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// TestPendingValidationsAreTold is a host whose state lists nothing.
func TestPendingValidationsAreTold(t *testing.T) {
	w := booted(t)
	agent := discovered("a", "m", bootMAC)
	agent.Status.DebugInfo = aiv1beta1.DebugInfo{State: "insufficient-unbound", StateInfo: "Host does not meet the minimum hardware requirements: "}
	agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
		Type: aiv1beta1.ValidatedCondition, Status: corev1.ConditionFalse, Message: "The agent's validations are failing: Missing inventory",
		LastTransitionTime: metav1.NewTime(w.clock.Add(-settling)),
	})
	w.create(agent)
	w.reconcile()
	w.lasts(bootstrapv1.HostBoundCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostValidationReason)
	w.Expect(w.message(bootstrapv1.HostBoundCondition)).To(ContainSubstring("Missing inventory"))
}
