package hostconfig

import (
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// settling is how long the validations of a host may fail without being reported: right after it registered they always do for a while.
const settling = 20 * time.Second

// validationMessage says what assisted-service misses, once it had time to make up its mind. Its clock may be another
// one than ours: a time that is far ahead is not waited for, or a host that it refuses would look like a new one for as
// long as the clocks differ.
func (s *scope) validationMessage(now time.Time) string {
	left := settling - now.Sub(validatedSince(s.agent))
	if 0 < left && left <= 2*settling {
		s.again.In(left)
		return "waiting for assisted-service to validate Agent " + s.agent.Name
	}
	return "assisted-service holds Agent " + s.agent.Name + " in state " + s.agent.Status.DebugInfo.State + ": " + assisted.ValidationProblems(s.agent)
}

// validatedSince is when assisted-service last changed its mind about the validations of a host.
func validatedSince(agent *aiv1beta1.Agent) time.Time {
	return assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition).LastTransitionTime.Time
}
