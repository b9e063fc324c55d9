// Package status composes the conditions of an OpenshiftAssistedConfig from the findings of the phases of a reconcile.
package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// Findings are the results of the phases for users. Each task is the type of the condition that reports it.
type Findings struct {
	findings.Findings[string]

	// OwnersRefused reports that the API server refused the owner references of a Secret of the config; empty if not.
	OwnersRefused string
}

// Pass records that a stage is done.
func (f *Findings) Pass(stage, message string) { f.Findings.Pass(stage, PassedReason(stage), message) }

// Set records the result of a task that a condition states.
func (f *Findings) Set(c metav1.Condition) {
	if c.Status == metav1.ConditionTrue {
		f.Findings.Pass(c.Type, c.Reason, c.Message)
	} else {
		f.Block(c.Type, c.Reason, c.Message)
	}
}

// condition returns the condition with the result of a task; false if the task has none.
func (f *Findings) condition(conditionType string) (metav1.Condition, bool) {
	c := metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue}
	found := f.Passed(conditionType)
	if found == nil {
		found = f.Blocked(conditionType)
		if conditionType != bootstrapv1.DeletingCondition { // a blocked deletion has begun
			c.Status = metav1.ConditionFalse
		}
	}
	if found == nil {
		return c, false
	}
	c.Reason, c.Message = found.Reason, found.Message
	return c, true
}
