package binding

import (
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// Settling is how long the validations of a host may fail before the failure is reported. Right after the
// registration they always fail for a while.
const Settling = 20 * time.Second

// validationMessage reports the validations that fail, once assisted-service had time to decide. Its clock may
// differ from ours. A time that is far ahead does not delay the report. Otherwise a refused host would count as
// new for as long as the clocks differ.
func validationMessage(s *scope.Scope, now time.Time) string {
	left := Settling - now.Sub(validatedSince(s.Agent))
	if 0 < left && left <= 2*Settling {
		s.Again.In(left)
		return "waiting for assisted-service to validate " + s.DescribeHost(s.Agent)
	}
	return "assisted-service keeps " + s.DescribeHost(s.Agent) + " in state " + s.Agent.Status.DebugInfo.State + ": " +
		assisted.ValidationProblems(s.Agent)
}

// validatedSince returns when assisted-service last changed the result of the validations of a host.
func validatedSince(agent *aiv1beta1.Agent) time.Time {
	return assisted.AgentCondition(agent, aiv1beta1.ValidatedCondition).LastTransitionTime.Time
}
