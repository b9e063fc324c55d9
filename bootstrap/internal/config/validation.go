package config

import (
	"strings"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// settling is how long the validations of a host may fail without being reported: right after it registered they always do for a while.
const settling = 20 * time.Second

// validationMessage says what assisted-service misses, once it had time to make up its mind.
func (s *scope) validationMessage(now time.Time) string {
	left := settling - now.Sub(validatedSince(s.agent))
	if left > 0 {
		s.again.In(left)
		return "waiting for assisted-service to validate Agent " + s.agent.Name
	}
	return "assisted-service holds Agent " + s.agent.Name + " in state " + s.agent.Status.DebugInfo.State + ": " + assisted.RedactURLs(notPassed(s.agent))
}

// notPassed are the validations that do not pass. The state names only those that fail, and is an empty list while others are pending: those are in the
// condition.
func notPassed(agent *aiv1beta1.Agent) string {
	info := strings.TrimSpace(agent.Status.DebugInfo.StateInfo)
	if info != "" && !strings.HasSuffix(info, ":") {
		return info
	}
	validated := assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition)
	if message := strings.TrimSpace(validated.Message); validated.Status != corev1.ConditionTrue && message != "" && !strings.HasSuffix(message, ":") {
		return message
	}
	return "it names no validation that fails"
}

// validatedSince is when assisted-service last changed its mind about the validations of a host.
func validatedSince(agent *aiv1beta1.Agent) time.Time {
	return assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition).LastTransitionTime.Time
}
