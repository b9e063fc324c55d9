package assistedsim

import (
	"errors"
	"fmt"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func clusterCondition(kind hivev1.ClusterInstallConditionType, status corev1.ConditionStatus, reason,
	message string,
) hivev1.ClusterInstallCondition {
	return hivev1.ClusterInstallCondition{Type: kind, Status: status, Reason: reason, Message: message}
}

// setClusterCondition sets both times when any field changes, as recorded from the service.
func setClusterCondition(conditions *[]hivev1.ClusterInstallCondition, wanted hivev1.ClusterInstallCondition) {
	now := metav1.Now()
	wanted.LastProbeTime, wanted.LastTransitionTime = now, now
	for i, c := range *conditions {
		if c.Type != wanted.Type {
			continue
		}
		if c.Status != wanted.Status || c.Reason != wanted.Reason || c.Message != wanted.Message {
			(*conditions)[i] = wanted
		}
		return
	}
	*conditions = append(*conditions, wanted)
}

func clusterSynced(err error) hivev1.ClusterInstallCondition {
	var input inputError
	switch {
	case err == nil:
		return clusterCondition(hiveext.ClusterSpecSyncedCondition, corev1.ConditionTrue, hiveext.ClusterSyncedOkReason,
			hiveext.ClusterSyncedOkReason) // recorded: the message is the reason
	case errors.As(err, &input):
		return clusterCondition(hiveext.ClusterSpecSyncedCondition, corev1.ConditionFalse, hiveext.ClusterInputErrorReason,
			hiveext.ClusterInputErrorMsg+" "+err.Error())
	}
	return clusterCondition(hiveext.ClusterSpecSyncedCondition, corev1.ConditionFalse, hiveext.ClusterBackendErrorReason,
		hiveext.ClusterBackendErrorMsg+" "+err.Error())
}

// unavailableConditions are the conditions of a cluster that the service could not register.
func unavailableConditions(err error) []hivev1.ClusterInstallCondition {
	conditions := []hivev1.ClusterInstallCondition{clusterSynced(err)}
	for _, kind := range []hivev1.ClusterInstallConditionType{
		hiveext.ClusterRequirementsMetCondition, hiveext.ClusterValidatedCondition, hiveext.ClusterCompletedCondition,
		hiveext.ClusterFailedCondition, hiveext.ClusterStoppedCondition,
	} {
		conditions = append(conditions,
			clusterCondition(kind, corev1.ConditionUnknown, hiveext.ClusterNotAvailableReason, hiveext.ClusterNotAvailableMsg))
	}
	return conditions
}

// clusterConditions returns the conditions of an AgentClusterInstall in the order in which the service writes
// them.
func clusterConditions(c *cluster, members []*host) []hivev1.ClusterInstallCondition {
	return []hivev1.ClusterInstallCondition{
		clusterSynced(c.specError), clusterRequirements(c, members), clusterValidated(c), clusterCompleted(c),
		clusterFailed(c), clusterStopped(c), clusterPreparation(c),
	}
}

func clusterRequirements(c *cluster, members []*host) hivev1.ClusterInstallCondition {
	is := func(status corev1.ConditionStatus, reason, message string) hivev1.ClusterInstallCondition {
		return clusterCondition(hiveext.ClusterRequirementsMetCondition, status, reason, message)
	}
	switch c.state {
	case models.ClusterStatusReady:
		return clusterReadiness(c, members)
	case models.ClusterStatusInsufficient, models.ClusterStatusPendingForInput:
		return is(corev1.ConditionFalse, hiveext.ClusterNotReadyReason, hiveext.ClusterNotReadyMsg)
	case models.ClusterStatusInstalled, models.ClusterStatusError, models.ClusterStatusCancelled:
		return is(corev1.ConditionTrue, hiveext.ClusterInstallationStoppedReason, hiveext.ClusterInstallationStoppedMsg)
	}
	return is(corev1.ConditionTrue, hiveext.ClusterAlreadyInstallingReason, hiveext.ClusterAlreadyInstallingMsg)
}

func clusterReadiness(c *cluster, members []*host) hivev1.ClusterInstallCondition {
	wanted := c.spec.ProvisionRequirements
	status, reason := corev1.ConditionFalse, startObstacle(c, members)
	var message string
	switch reason {
	case "":
		status, reason, message = corev1.ConditionTrue, hiveext.ClusterReadyReason, hiveext.ClusterReadyMsg
	case hiveext.ClusterUnsyncedAgentsReason:
		unsynced := 0
		for _, h := range members {
			if h.specError != nil {
				unsynced++
			}
		}
		message = fmt.Sprintf(hiveext.ClusterUnsyncedAgentsMsg, unsynced)
	case hiveext.ClusterInsufficientAgentsReason:
		counted := countIn(members)
		message = fmt.Sprintf(hiveext.ClusterInsufficientAgentsMsg,
			wanted.ControlPlaneAgents, wanted.ArbiterAgents, wanted.WorkerAgents, counted.ControlPlaneAgents, counted.ArbiterAgents,
			counted.WorkerAgents)
	default:
		approved := 0
		for _, h := range members {
			if h.approved && h.state == models.HostStatusKnown {
				approved++
			}
		}
		message = fmt.Sprintf(hiveext.ClusterUnapprovedAgentsMsg, hostsOf(wanted)-approved)
	}
	return clusterCondition(hiveext.ClusterRequirementsMetCondition, status, reason, message)
}

func clusterValidated(c *cluster) hivev1.ClusterInstallCondition {
	is := func(status corev1.ConditionStatus, reason, message string) hivev1.ClusterInstallCondition {
		return clusterCondition(hiveext.ClusterValidatedCondition, status, reason, strings.TrimSpace(message))
	}
	switch c.state {
	case models.ClusterStatusInsufficient:
		return is(corev1.ConditionFalse, hiveext.ClusterValidationsFailingReason, hiveext.ClusterValidationsFailingMsg+" "+c.failing)
	case models.ClusterStatusPendingForInput:
		return is(corev1.ConditionFalse, hiveext.ClusterValidationsUserPendingReason, hiveext.ClusterValidationsUserPendingMsg+" "+c.failing)
	}
	return is(corev1.ConditionTrue, hiveext.ClusterValidationsPassingReason, hiveext.ClusterValidationsOKMsg)
}

func clusterCompleted(c *cluster) hivev1.ClusterInstallCondition {
	is := func(status corev1.ConditionStatus, reason, message string) hivev1.ClusterInstallCondition {
		return clusterCondition(hiveext.ClusterCompletedCondition, status, reason, message)
	}
	switch {
	case c.waiting() && c.hold:
		return is(corev1.ConditionFalse, hiveext.ClusterInstallationOnHoldReason, hiveext.ClusterInstallationOnHoldMsg)
	case c.waiting():
		return is(corev1.ConditionFalse, hiveext.ClusterInstallationNotStartedReason, hiveext.ClusterInstallationNotStartedMsg)
	case c.state == models.ClusterStatusInstalled || c.state == models.ClusterStatusAddingHosts:
		return is(corev1.ConditionTrue, hiveext.ClusterInstalledReason, hiveext.ClusterInstalledMsg+" "+c.info)
	case c.state == models.ClusterStatusError || c.state == models.ClusterStatusCancelled:
		return is(corev1.ConditionFalse, hiveext.ClusterInstallationFailedReason, hiveext.ClusterInstallationFailedMsg+" "+c.info)
	}
	return is(corev1.ConditionFalse, hiveext.ClusterInstallationInProgressReason, hiveext.ClusterInstallationInProgressMsg+" "+c.info)
}

func clusterFailed(c *cluster) hivev1.ClusterInstallCondition {
	if c.state == models.ClusterStatusError {
		return clusterCondition(hiveext.ClusterFailedCondition, corev1.ConditionTrue, hiveext.ClusterFailedReason,
			hiveext.ClusterFailedMsg+" "+c.info)
	}
	return clusterCondition(hiveext.ClusterFailedCondition, corev1.ConditionFalse, hiveext.ClusterNotFailedReason,
		hiveext.ClusterNotFailedMsg)
}

func clusterStopped(c *cluster) hivev1.ClusterInstallCondition {
	is := func(status corev1.ConditionStatus, reason, message string) hivev1.ClusterInstallCondition {
		return clusterCondition(hiveext.ClusterStoppedCondition, status, reason, message)
	}
	switch c.state {
	case models.ClusterStatusError:
		return is(corev1.ConditionTrue, hiveext.ClusterStoppedFailedReason, hiveext.ClusterStoppedFailedMsg)
	case models.ClusterStatusCancelled:
		return is(corev1.ConditionTrue, hiveext.ClusterStoppedCanceledReason, hiveext.ClusterStoppedCanceledMsg)
	case models.ClusterStatusInstalled, models.ClusterStatusAddingHosts:
		return is(corev1.ConditionTrue, hiveext.ClusterStoppedCompletedReason, hiveext.ClusterStoppedCompletedMsg)
	}
	return is(corev1.ConditionFalse, hiveext.ClusterNotStoppedReason, hiveext.ClusterNotStoppedMsg)
}

// clusterPreparation returns the condition of the preparation. Its reasons contain spaces, and its message is
// empty except after a failure.
func clusterPreparation(c *cluster) hivev1.ClusterInstallCondition {
	is := func(status corev1.ConditionStatus, reason, message string) hivev1.ClusterInstallCondition {
		return clusterCondition(hiveext.ClusterLastInstallationPreparationFailedCondition, status, reason, message)
	}
	switch {
	case c.lastFailure != "":
		return is(corev1.ConditionTrue, hiveext.ClusterLastInstallationPreparationFailedErrorReason, c.lastFailure)
	case c.prepared:
		return is(corev1.ConditionFalse, hiveext.ClusterLastInstallationPreparationFailedOKReason, "")
	}
	return is(corev1.ConditionFalse, hiveext.ClusterLastInstallationPreparationPending, "")
}
