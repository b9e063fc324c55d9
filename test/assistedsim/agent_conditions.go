package assistedsim

import (
	"errors"
	"fmt"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
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
			agentCondition(aiv1beta1.CleanupCondition, corev1.ConditionFalse, aiv1beta1.CleanupFailedReason, h.cleanup))
	}
	return conditions
}

func agentSynced(h *host) conditionsv1.Condition {
	var input inputError
	switch {
	case h.backendError:
		conflict := fmt.Sprintf(`Operation cannot be fulfilled on agents.agent-install.openshift.io %q: the object has been `+
			`modified; please apply your changes to the latest version and try again`, h.key.Name)
		return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionFalse, aiv1beta1.BackendErrorReason,
			aiv1beta1.BackendErrorMsg+" "+conflict)
	case errors.As(h.specError, &input):
		return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionFalse, aiv1beta1.InputErrorReason,
			aiv1beta1.InputErrorMsg+" "+input.message)
	case h.specError != nil:
		return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionFalse, aiv1beta1.BackendErrorReason,
			aiv1beta1.BackendErrorMsg+" "+h.specError.Error())
	}
	return agentCondition(aiv1beta1.SpecSyncedCondition, corev1.ConditionTrue, aiv1beta1.SyncedOkReason, aiv1beta1.SyncedOkMsg)
}

func agentConnected(h *host) conditionsv1.Condition {
	if h.state == models.HostStatusDisconnected || h.state == models.HostStatusDisconnectedUnbound {
		return agentCondition(aiv1beta1.ConnectedCondition, corev1.ConditionFalse, aiv1beta1.AgentDisconnectedReason,
			aiv1beta1.AgentDisonnectedMsg)
	}
	return agentCondition(aiv1beta1.ConnectedCondition, corev1.ConditionTrue, aiv1beta1.AgentConnectedReason, aiv1beta1.AgentConnectedMsg)
}

func agentRequirements(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.RequirementsMetCondition, status, reason, message)
	}
	switch h.state {
	case models.HostStatusKnown, models.HostStatusKnownUnbound:
		if h.approved {
			return is(corev1.ConditionTrue, aiv1beta1.AgentReadyReason, aiv1beta1.AgentReadyMsg)
		}
		return is(corev1.ConditionFalse, aiv1beta1.AgentIsNotApprovedReason, aiv1beta1.AgentIsNotApprovedMsg)
	case models.HostStatusBinding:
		return is(corev1.ConditionFalse, aiv1beta1.BindingReason, aiv1beta1.BindingMsg)
	case models.HostStatusUnbinding, models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, aiv1beta1.UnbindingReason, aiv1beta1.UnbindingMsg)
	case models.HostStatusInstalled, models.HostStatusAddedToExistingCluster, models.HostStatusError:
		return is(corev1.ConditionTrue, aiv1beta1.AgentInstallationStoppedReason, aiv1beta1.AgentInstallationStoppedMsg)
	case models.HostStatusPreparingFailed, models.HostStatusCancelled:
		return is(corev1.ConditionUnknown, aiv1beta1.UnknownStatusReason, aiv1beta1.UnknownStatusMsg+" "+h.state)
	}
	if installing(h.state) {
		return is(corev1.ConditionTrue, aiv1beta1.AgentAlreadyInstallingReason, aiv1beta1.AgentAlreadyInstallingMsg)
	}
	return is(corev1.ConditionFalse, aiv1beta1.AgentNotReadyReason, aiv1beta1.AgentNotReadyMsg)
}

func agentValidated(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.ValidatedCondition, status, reason, message)
	}
	switch {
	case h.state == models.HostStatusBinding:
		return is(corev1.ConditionFalse, aiv1beta1.BindingReason, aiv1beta1.BindingMsg)
	case h.state == models.HostStatusUnbinding || h.state == models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, aiv1beta1.UnbindingReason, aiv1beta1.UnbindingMsg)
	case h.validation == validationPassing:
		return is(corev1.ConditionTrue, aiv1beta1.ValidationsPassingReason, aiv1beta1.AgentValidationsPassingMsg)
	case h.validation == validationFailing:
		return is(corev1.ConditionFalse, aiv1beta1.ValidationsFailingReason,
			strings.TrimSpace(aiv1beta1.AgentValidationsFailingMsg+" "+h.failing))
	}
	return is(corev1.ConditionUnknown, aiv1beta1.ValidationsUnknownReason, aiv1beta1.AgentValidationsUnknownMsg)
}

func agentInstalled(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.InstalledCondition, status, reason, message)
	}
	switch h.state {
	case models.HostStatusInstalled, models.HostStatusAddedToExistingCluster:
		return is(corev1.ConditionTrue, aiv1beta1.InstalledReason, aiv1beta1.InstalledMsg+" "+h.info)
	case models.HostStatusError:
		return is(corev1.ConditionFalse, aiv1beta1.InstallationFailedReason, aiv1beta1.InstallationFailedMsg+" "+h.info)
	case models.HostStatusBinding:
		return is(corev1.ConditionFalse, aiv1beta1.BindingReason, aiv1beta1.BindingMsg)
	case models.HostStatusUnbinding, models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, aiv1beta1.UnbindingReason, aiv1beta1.UnbindingMsg)
	case models.HostStatusPreparingFailed, models.HostStatusCancelled:
		return is(corev1.ConditionUnknown, aiv1beta1.UnknownStatusReason, aiv1beta1.UnknownStatusMsg+" "+h.state)
	}
	if installing(h.state) {
		return is(corev1.ConditionFalse, aiv1beta1.InstallationInProgressReason, aiv1beta1.InstallationInProgressMsg+" "+h.info)
	}
	return is(corev1.ConditionFalse, aiv1beta1.InstallationNotStartedReason, aiv1beta1.InstallationNotStartedMsg)
}

func agentBound(h *host) conditionsv1.Condition {
	is := func(status corev1.ConditionStatus, reason, message string) conditionsv1.Condition {
		return agentCondition(aiv1beta1.BoundCondition, status, reason, message)
	}
	switch {
	case h.unbound():
		return is(corev1.ConditionFalse, aiv1beta1.UnboundReason, aiv1beta1.UnboundMsg)
	case h.state == models.HostStatusBinding:
		return is(corev1.ConditionFalse, aiv1beta1.BindingReason, aiv1beta1.BindingMsg)
	case h.state == models.HostStatusUnbinding:
		return is(corev1.ConditionFalse, aiv1beta1.UnbindingReason, aiv1beta1.UnbindingMsg)
	case h.state == models.HostStatusUnbindingPendingUserAction:
		return is(corev1.ConditionFalse, aiv1beta1.UnbindingPendingUserActionReason, aiv1beta1.UnbindingPendingUserActionMsg)
	}
	return is(corev1.ConditionTrue, aiv1beta1.BoundReason, aiv1beta1.BoundMsg)
}
