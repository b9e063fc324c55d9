package installed

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// validationTime is the time in which the validations of a new host usually pass. The agent of a host sends inventory,
// connectivity and the state of NTP once a minute. Validations of the cluster fail until all its hosts are approved.
const validationTime = 5 * time.Minute

// validationFailed returns the condition for failing validations. They are a wait for hosts until validationTime has passed.
func (v *View) validationFailed(message string) metav1.Condition {
	reason := controlplanev1.ValidationFailedReason
	if v.UntilValidationsCount() > 0 && !v.reported(reason) { // another host does not end the problem
		reason = controlplanev1.WaitingForHostsReason
	}
	return condition.False(controlplanev1.InstalledCondition, reason, v.ofHosts(message, failingStates))
}

// UntilValidationsCount returns the time until failing validations become a problem; zero: they are one, or never.
func (v *View) UntilValidationsCount() time.Duration {
	var last time.Time
	for i := range v.Agents {
		since := v.Agents[i].CreationTimestamp.Time
		if bound := assisted.AgentCondition(&v.Agents[i], aiv1beta1.BoundCondition); bound.LastTransitionTime.After(since) {
			since = bound.LastTransitionTime.Time
		}
		if since.After(last) {
			last = since
		}
	}
	if last.IsZero() || v.Begun {
		return 0
	}
	return max(0, validationTime-v.Now.Sub(last))
}
