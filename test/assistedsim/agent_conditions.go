package assistedsim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// inputError is an error in the spec of an object. All other errors count as errors of the service.
type inputError struct{ message string }

func (e inputError) Error() string { return e.message }

func inputErrorf(format string, args ...any) error { return inputError{fmt.Sprintf(format, args...)} }

func agentCondition(kind conditionsv1.ConditionType, status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
	return conditionsv1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// agentConditions returns the conditions of an Agent in the order in which the service writes them.
func agentConditions(h *host) []conditionsv1.Condition {
	conditions := []conditionsv1.Condition{
		agentSynced(h), agentConnected(h), agentRequirements(h), agentValidated(h), agentInstalled(h), agentBound(h),
	}
	if h.cleanup != "" {
		conditions = append(conditions,
			agentCondition(aiv1beta1.CleanupCondition, corev1.ConditionFalse, cleanupFailedReason, h.cleanup))
	}
	return conditions
}

func agentSynced(h *host) conditionsv1.Condition {
	var input inputError
	switch {
	case h.backendError:
		conflict := fmt.Sprintf(`Operation cannot be fulfilled on agents.agent-install.openshift.io %q: the object has been `+
			`modified; please apply your changes to the latest version and try again`, h.key.Name)
		return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionFalse, backendErrorReason,
			backendErrorMsg+" "+conflict)
	case errors.As(h.specError, &input):
		return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionFalse, aiv1beta1.InputErrorReason,
			inputErrorMsg+" "+input.message)
	case h.specError != nil:
		return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionFalse, backendErrorReason,
			backendErrorMsg+" "+h.specError.Error())
	}
	return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionTrue, syncedOkReason, syncedOkMsg)
}

func agentConnected(h *host) conditionsv1.Condition {
	if h.state == models.HostStatusDisconnected || h.state == models.HostStatusDisconnectedUnbound {
		return agentCondition(aiv1beta1.ConnectedCondition, corev1.ConditionFalse, aiv1beta1.AgentDisconnectedReason,
			agentDisconnectedMsg)
	}
	return agentCondition(aiv1beta1.ConnectedCondition, corev1.ConditionTrue, agentConnectedReason, agentConnectedMsg)
}

func agentRequirements(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.RequirementsMetCondition, status, reason, message)
	}
	switch h.state {
	case models.HostStatusKnown, models.HostStatusKnownUnbound:
		if h.approved {
			return is(corev1.ConditionTrue, agentReadyReason, agentReadyMsg)
		}
		return is(corev1.ConditionFalse, agentIsNotApprovedReason, agentIsNotApprovedMsg)
	case models.HostStatusBinding:
		return is(corev1.ConditionFalse, bindingReason, bindingMsg)
	case models.HostStatusUnbinding, models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, unbindingReason, unbindingMsg)
	case models.HostStatusInstalled, models.HostStatusAddedToExistingCluster, models.HostStatusError:
		return is(corev1.ConditionTrue, agentInstallationStoppedReason, agentInstallationStoppedMsg)
	case models.HostStatusPreparingFailed, models.HostStatusCancelled:
		return is(corev1.ConditionUnknown, unknownStatusReason, unknownStatusMsg+" "+h.state)
	}
	if installing(h.state) {
		return is(corev1.ConditionTrue, agentAlreadyInstallingReason, agentAlreadyInstallingMsg)
	}
	return is(corev1.ConditionFalse, agentNotReadyReason, agentNotReadyMsg)
}

func agentValidated(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.ValidatedCondition, status, reason, message)
	}
	switch {
	case h.state == models.HostStatusBinding:
		return is(corev1.ConditionFalse, bindingReason, bindingMsg)
	case h.state == models.HostStatusUnbinding || h.state == models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, unbindingReason, unbindingMsg)
	case h.validation == validationPassing:
		return is(corev1.ConditionTrue, validationsPassingReason, agentValidationsPassingMsg)
	case h.validation == validationFailing:
		return is(corev1.ConditionFalse, aiv1beta1.ValidationsFailingReason,
			strings.TrimSpace(agentValidationsFailingMsg+" "+h.failing))
	}
	return is(corev1.ConditionUnknown, validationsUnknownReason, agentValidationsUnknownMsg)
}

func agentInstalled(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.InstalledCondition, status, reason, message)
	}
	switch h.state {
	case models.HostStatusInstalled, models.HostStatusAddedToExistingCluster:
		return is(corev1.ConditionTrue, installedReason, installedMsg+" "+h.info)
	case models.HostStatusError:
		return is(corev1.ConditionFalse, installationFailedReason, installationFailedMsg+" "+h.info)
	case models.HostStatusBinding:
		return is(corev1.ConditionFalse, bindingReason, bindingMsg)
	case models.HostStatusUnbinding, models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, unbindingReason, unbindingMsg)
	case models.HostStatusPreparingFailed, models.HostStatusCancelled:
		return is(corev1.ConditionUnknown, unknownStatusReason, unknownStatusMsg+" "+h.state)
	}
	if installing(h.state) {
		return is(corev1.ConditionFalse, installationInProgressReason, installationInProgressMsg+" "+h.info)
	}
	return is(corev1.ConditionFalse, installationNotStartedReason, installationNotStartedMsg)
}

func agentBound(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.BoundCondition, status, reason, message)
	}
	switch {
	case h.unbound():
		return is(corev1.ConditionFalse, unboundReason, unboundMsg)
	case h.state == models.HostStatusBinding:
		return is(corev1.ConditionFalse, bindingReason, bindingMsg)
	case h.state == models.HostStatusUnbinding:
		return is(corev1.ConditionFalse, unbindingReason, unbindingMsg)
	case h.state == models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, unbindingPendingUserActionReason, unbindingPendingUserActionMsg)
	}
	return is(corev1.ConditionTrue, boundReason, boundMsg)
}
