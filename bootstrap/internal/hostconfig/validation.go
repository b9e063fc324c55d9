package hostconfig

import (
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// settling is how long the validations of a host may fail before the failure is reported. Right after the
// registration they always fail for a while.
const settling = 20 * time.Second

// validationMessage reports the validations that fail, once assisted-service had time to decide. Its clock may
// differ from ours. A time that is far ahead does not delay the report. Otherwise a refused host would count as
// new for as long as the clocks differ.
func (s *scope) validationMessage(now time.Time) string {
	left := settling - now.Sub(validatedSince(s.agent))
	if 0 < left && left <= 2*settling {
		s.again.In(left)
		return "waiting for assisted-service to validate Agent " + s.agent.Name
	}
	return "assisted-service holds Agent " + s.agent.Name + " in state " + s.agent.Status.DebugInfo.State + ": " + assisted.ValidationProblems(s.agent)
}

// validatedSince returns when assisted-service last changed the result of the validations of a host.
func validatedSince(agent *aiv1beta1.Agent) time.Time {
	return assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition).LastTransitionTime.Time
}
