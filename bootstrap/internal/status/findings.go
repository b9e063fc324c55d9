// Package status composes the conditions of an OpenshiftAssistedConfig from the findings of the phases of a reconcile.
package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// Findings are the results of the phases for users.
type Findings struct {
	// Conditions are those that the phases decided, in their order.
	Conditions []metav1.Condition
	// Events are emitted once the status is written.
	Events []Event
	// OwnersRefused reports that the API server refused the owner references of a Secret of the config; empty if not.
	OwnersRefused string
}

// Event is an event for people who watch the host.
type Event struct {
	Kind, Reason, Message string
}

// Found returns a condition that a phase of this reconcile has set; nil if none has.
func (f *Findings) Found(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(f.Conditions, conditionType)
}

// Pass records that a stage is done.
func (f *Findings) Pass(conditionType, message string) {
	f.Conditions = append(f.Conditions, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, Reason: PassedReason(conditionType), Message: message,
	})
}

// Wait records the blocker or the problem of a stage, and stops the phases.
func (f *Findings) Wait(conditionType, reason, format string, args ...any) (bool, error) {
	f.Conditions = append(f.Conditions, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
	return false, nil
}

// WaitDeleting records the blocker of the deletion, and stops the phases.
func (f *Findings) WaitDeleting(reason, format string, args ...any) (bool, error) {
	f.Conditions = append(f.Conditions, metav1.Condition{
		Type: bootstrapv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
	return false, nil
}

// QueueEvent queues an event that is emitted once the status is written.
func (f *Findings) QueueEvent(kind, reason, format string, args ...any) {
	f.Events = append(f.Events, Event{kind, reason, fmt.Sprintf(format, args...)})
}
