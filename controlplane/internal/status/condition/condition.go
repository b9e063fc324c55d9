// Package condition builds conditions, and computes how long they may keep their status.
package condition

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// True returns a condition without message that is True.
func True(conditionType, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason}
}

// False returns a condition that is False.
func False(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Blocked returns the condition of a task that is blocked, with the recorded reason and message.
func Blocked(conditionType string, blocker *findings.Outcome) metav1.Condition {
	return False(conditionType, blocker.Reason, blocker.Message)
}

// Unknown returns a condition that is Unknown.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// UnknownLeft returns the time that a condition may stay Unknown until it has to be False. The time begins
// when the condition becomes Unknown, and survives a restart of the manager together with the condition. A
// condition that is False stays False: the time does not begin again before the condition was True.
func UnknownLeft(before *metav1.Condition, limit time.Duration, now time.Time) time.Duration {
	switch {
	case before == nil, before.Status == metav1.ConditionTrue:
		return limit
	case before.Status == metav1.ConditionFalse:
		return 0
	}
	return max(0, limit-now.Sub(before.LastTransitionTime.Time))
}

// Soonest returns the shortest positive time; zero if none is positive.
func Soonest(times ...time.Duration) time.Duration {
	times = slices.DeleteFunc(times, func(left time.Duration) bool { return left <= 0 })
	if len(times) == 0 {
		return 0
	}
	return slices.Min(times)
}
