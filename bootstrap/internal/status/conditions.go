package status

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// Summarize returns all conditions: those that the phases found, and none of the later stages that the host has
// not reached. The condition HostInstalled stays True. After an error, the stages without a result keep their
// recorded conditions.
func Summarize(f *facts.Facts, found *Findings, failure error) []metav1.Condition {
	result := slices.Clone(f.Config.Status.Conditions)
	for _, stage := range stages {
		c, ok := found.condition(stage.condition)
		if stage.condition == bootstrapv1.DataSecretAvailableCondition && found.OwnersRefused != "" { // of any Secret of the config
			c.Message = strings.TrimPrefix(c.Message+". "+found.OwnersRefused, ". ")
		}
		recorded := f.Recorded(stage.condition)
		switch {
		case ok:
			set(&result, f, c)
		case failure != nil || f.Deleting():
		case recorded != nil && stage.condition == bootstrapv1.HostInstalledCondition && recorded.Status == metav1.ConditionTrue:
		default:
			meta.RemoveStatusCondition(&result, stage.condition)
		}
	}
	if c, ok := found.condition(bootstrapv1.HostAvailableCondition); ok && !isOver(f, found, c) {
		set(&result, f, c)
	} else if !f.Deleting() {
		meta.RemoveStatusCondition(&result, bootstrapv1.HostAvailableCondition)
	}
	set(&result, f, deletingCondition(f, found, failure))
	set(&result, f, readyCondition(f, result, failure))
	set(&result, f, contract.PausedCondition(f.Cluster, f.Config))
	slices.SortStableFunc(result, func(a, b metav1.Condition) int { return rank(a.Type) - rank(b.Type) })
	return result
}

// isOver reports whether HostAvailable only names the host of a Machine that is installed now. The next reconcile reads the
// end of the installation in the status, and would drop the condition with a second write.
func isOver(f *facts.Facts, found *Findings, available metav1.Condition) bool {
	deprovisioned := f.InfraMachine != nil && f.InfraMachine.GetDeletionTimestamp() != nil
	return available.Reason == bootstrapv1.HostChosenReason && !deprovisioned && found.Passed(bootstrapv1.HostInstalledCondition) != nil
}

func set(conditions *[]metav1.Condition, f *facts.Facts, c metav1.Condition) {
	c.ObservedGeneration = f.Config.Generation
	meta.SetStatusCondition(conditions, c)
}

// deletingCondition returns what blocks the deletion. After an error it returns the recorded condition, or reports
// that the blocker could not be decided yet.
func deletingCondition(f *facts.Facts, found *Findings, failure error) metav1.Condition {
	if c, ok := found.condition(bootstrapv1.DeletingCondition); ok {
		return c
	}
	if recorded := f.Recorded(bootstrapv1.DeletingCondition); f.Deleting() && recorded != nil && recorded.Status == metav1.ConditionTrue {
		return *recorded
	}
	if f.Deleting() {
		return metav1.Condition{
			Type: bootstrapv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: bootstrapv1.InternalErrorReason,
			Message: internalError(bootstrapv1.DeletingCondition, failure),
		}
	}
	return metav1.Condition{Type: bootstrapv1.DeletingCondition, Status: metav1.ConditionFalse, Reason: bootstrapv1.NotDeletingReason}
}

// readyCondition returns Ready with the reason and message of the first stage that is not passed.
func readyCondition(f *facts.Facts, conditions []metav1.Condition, failure error) metav1.Condition {
	ready := metav1.Condition{Type: bootstrapv1.ReadyCondition, Status: metav1.ConditionFalse}
	if f.Deleting() {
		c := meta.FindStatusCondition(conditions, bootstrapv1.DeletingCondition)
		ready.Reason, ready.Message = c.Reason, c.Message
		return ready
	}
	for _, stage := range stages {
		c := meta.FindStatusCondition(conditions, stage.condition)
		switch {
		case c == nil:
			ready.Status, ready.Reason = metav1.ConditionUnknown, bootstrapv1.InternalErrorReason
			ready.Message = internalError(stage.condition, failure)
			return ready
		case c.Status != metav1.ConditionTrue:
			ready.Reason, ready.Message = c.Reason, c.Message
			return ready
		}
	}
	ready.Status, ready.Reason = metav1.ConditionTrue, bootstrapv1.HostInstalledReason
	return ready
}

// internalError reports that a stage could not be decided. It reports only the kind of the error: the text of the
// error may name objects that readers of the condition must not read.
func internalError(stage string, failure error) string {
	kind := ""
	if reason := apierrors.ReasonForError(failure); reason != metav1.StatusReasonUnknown {
		kind = fmt.Sprintf(": the API server answers %s", reason)
		var status apierrors.APIStatus
		if errors.As(failure, &status) && status.Status().Details != nil && status.Status().Details.Kind != "" {
			kind += fmt.Sprintf(" (%s)", status.Status().Details.Kind)
		}
	}
	return fmt.Sprintf("the last attempt failed before %s could be decided%s. The provider retries: see the log of the manager", stage, kind)
}

// rank sorts Ready first, then the stages in their order, then all other conditions.
func rank(conditionType string) int {
	if conditionType == bootstrapv1.ReadyCondition {
		return -1
	}
	if i := slices.IndexFunc(stages, func(s stage) bool { return s.condition == conditionType }); i >= 0 {
		return i
	}
	return len(stages)
}
