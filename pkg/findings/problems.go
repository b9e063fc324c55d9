package findings

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProblemEndedReason is the reason of the Event about a problem that a condition no longer reports.
const ProblemEndedReason = "ProblemEnded"

// ProblemEvents queues the Events about a change of the problems that the status records. Each new problem is a Warning
// with its reason and message. Each reason that ended is a Normal Event. A problem with another message is the
// same problem. A reason with a queued Warning gets no other one. Each message names the host, unless host is empty.
func (f *Findings[Task]) ProblemEvents(host string, before, after []metav1.Condition) {
	for _, c := range without(after, before) {
		if !slices.ContainsFunc(f.events, func(e Event) bool { return e.Type == corev1.EventTypeWarning && e.Reason == c.Reason }) {
			f.StatusEvent(corev1.EventTypeWarning, c.Reason, "%s", named(host, c.Message))
		}
	}
	for _, c := range without(before, after) {
		f.StatusEvent(corev1.EventTypeNormal, ProblemEndedReason, "%s", named(host, "the condition "+c.Type+" no longer reports "+c.Reason))
	}
}

// FirstOfReasons returns the conditions that report a problem, in their order. Of several conditions with the same reason it
// returns the first.
func FirstOfReasons(conditions []metav1.Condition, isProblem func(*metav1.Condition) bool) []metav1.Condition {
	var found []metav1.Condition
	for i := range conditions {
		c := &conditions[i]
		known := slices.ContainsFunc(found, func(f metav1.Condition) bool { return f.Reason == c.Reason })
		if isProblem(c) && !known {
			found = append(found, *c)
		}
	}
	return found
}

// without returns the conditions whose reason no other condition has.
func without(conditions, others []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(c metav1.Condition) bool {
		return slices.ContainsFunc(others, func(o metav1.Condition) bool { return o.Reason == c.Reason })
	})
}

// named returns a message that names the host.
func named(host, message string) string {
	if host == "" || strings.Contains(message, host) {
		return message
	}
	return host + ": " + message
}
