package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
)

// stage is a condition with all its possible reasons. A reason of several conditions is listed with the first of
// them.
type stage struct {
	condition string
	// passed is the reason when the condition is True.
	passed string
	// deferrable are the reasons of waits that usually end without an action of the user, and of steps that need no
	// action. They are reported once they last. urgent reasons are reported at once, and so is a reason that is in
	// neither list.
	deferrable, urgent []string
}

// stages are the conditions that a host passes one after the other.
var stages = []stage{
	{
		condition: bootstrapv1.DiscoveryImageReadyCondition,
		passed:    bootstrapv1.DiscoveryImageReadyReason,
		deferrable: []string{
			bootstrapv1.WaitingForMachineReason, bootstrapv1.WaitingForClusterInfrastructureReason, bootstrapv1.WaitingForClusterDeploymentReason,
			bootstrapv1.WaitingForAgentClusterInstallReason, bootstrapv1.WaitingForInfraMachineReason, bootstrapv1.WaitingForDiscoveryImageReason,
			bootstrapv1.DiscoveryImageReadyReason,
		},
		urgent: []string{
			bootstrapv1.MachinePoolNotSupportedReason, bootstrapv1.ClusterDeploymentNotOursReason, bootstrapv1.InfraEnvNotOursReason,
			bootstrapv1.PullSecretMissingReason, bootstrapv1.InvalidConfigurationReason,
			bootstrapv1.WaitingForNMStateConfigReason, bootstrapv1.DiscoveryImageFailedReason, bootstrapv1.AssistedServiceNotRespondingReason,
		},
	},
	{
		condition:  bootstrapv1.DataSecretAvailableCondition,
		passed:     bootstrapv1.DataSecretAvailableReason,
		deferrable: []string{bootstrapv1.DataSecretAvailableReason},
		urgent: []string{
			bootstrapv1.DiscoveryImageUnavailableReason, bootstrapv1.BootImageRejectedReason, bootstrapv1.BootImageOutdatedReason,
			bootstrapv1.IgnitionDownloadFailedReason, bootstrapv1.ServerInUseReason, bootstrapv1.BMCOfAnotherServerReason,
		},
	},
	{
		condition:  bootstrapv1.HostIdentifiedCondition,
		passed:     bootstrapv1.HostIdentifiedReason,
		deferrable: []string{bootstrapv1.WaitingForHostReason, bootstrapv1.WaitingForHostIdentityReason, bootstrapv1.HostIdentifiedReason},
		urgent:     []string{bootstrapv1.HostRefusedReason, bootstrapv1.HostNotRespondingReason, bootstrapv1.HostBootedDiscoveryAgainReason},
	},
	{
		condition: bootstrapv1.HostBoundCondition,
		passed:    bootstrapv1.HostBoundReason,
		deferrable: []string{
			bootstrapv1.ClusterNotAcceptingHostsReason, bootstrapv1.WaitingForHostValidationReason, bootstrapv1.HostBindingReason,
			bootstrapv1.HostBoundReason,
		},
		urgent: []string{
			bootstrapv1.RoleConflictReason, bootstrapv1.HostBelowRequirementsReason, bootstrapv1.InstallationDiskNotFoundReason,
			bootstrapv1.ClusterReregisteredReason,
			bootstrapv1.NodeNameTakenReason, bootstrapv1.FencingCredentialsUnusableReason,
		},
	},
	{
		condition:  bootstrapv1.HostApprovedCondition,
		passed:     bootstrapv1.HostApprovedReason,
		deferrable: []string{bootstrapv1.HostApprovedReason},
		urgent:     []string{bootstrapv1.HostRestoredWithoutHistoryReason},
	},
	{
		condition:  bootstrapv1.HostInstalledCondition,
		passed:     bootstrapv1.HostInstalledReason,
		deferrable: []string{bootstrapv1.WaitingForInstallationReason, bootstrapv1.HostInstallingReason},
		urgent:     []string{bootstrapv1.HostInstallationFailedReason, bootstrapv1.HostInstalledReason},
	},
}

// otherConditions are the conditions that are no stages, and that no host passes. Ready has the reasons of the stages, and
// one reason of its own.
var otherConditions = []stage{
	{condition: bootstrapv1.ReadyCondition, deferrable: []string{bootstrapv1.InternalErrorReason}},
	{
		condition: bootstrapv1.HostAvailableCondition,
		deferrable: []string{
			bootstrapv1.HostsFitReason, bootstrapv1.HostChosenReason, bootstrapv1.NoHostFitsReason, bootstrapv1.TooFewHostsReason,
			bootstrapv1.NMStateConfigMismatchReason, bootstrapv1.HostUnhealthyReason,
		},
		urgent: []string{bootstrapv1.HostFailedReason, bootstrapv1.HostUnmanagedReason},
	},
	{
		condition:  bootstrapv1.DeletingCondition,
		deferrable: []string{bootstrapv1.NotDeletingReason},
		urgent:     []string{bootstrapv1.DeletingAgentReason, bootstrapv1.DeletingInfraEnvReason, bootstrapv1.HostInAnotherClusterReason},
	},
	{condition: clusterv1.PausedCondition, deferrable: []string{clusterv1.NotPausedReason}, urgent: []string{clusterv1.PausedReason}},
}

// PassedReason returns the reason with which a condition is True.
func PassedReason(condition string) string {
	for _, s := range stages {
		if s.condition == condition {
			return s.passed
		}
	}
	return ""
}

// Problems returns the conditions that report a problem, in their order. Of several conditions with the same reason it
// returns the first. Ready repeats another condition. While the config is being deleted, only the deletion matters.
func Problems(conditions []metav1.Condition, deleting bool) []metav1.Condition {
	return findings.FirstOfReasons(conditions, func(c *metav1.Condition) bool {
		return isProblem(c) && deleting == (c.Type == bootstrapv1.DeletingCondition)
	})
}

// lastingReasons are the deferrable reasons of problems: no host may be started, or the host may not be installed.
var lastingReasons = []string{
	bootstrapv1.NoHostFitsReason, bootstrapv1.TooFewHostsReason, bootstrapv1.NMStateConfigMismatchReason, bootstrapv1.HostUnhealthyReason,
}

// isProblem reports whether a condition reports a problem: a state that does not end automatically. HostAvailable is
// early, while BareMetalHosts may still be inspected: that no host fits is a problem once HostIdentified reports it.
func isProblem(c *metav1.Condition) bool {
	switch c.Type {
	case bootstrapv1.ReadyCondition, clusterv1.PausedCondition:
		return false
	case bootstrapv1.DeletingCondition:
		working := []string{bootstrapv1.DeletingAgentReason, bootstrapv1.DeletingInfraEnvReason}
		return c.Status == metav1.ConditionTrue && !IsDeferrable(c.Reason) && !slices.Contains(working, c.Reason)
	}
	ahead := []string{bootstrapv1.NoHostFitsReason, bootstrapv1.TooFewHostsReason}
	if c.Type == bootstrapv1.HostAvailableCondition && slices.Contains(ahead, c.Reason) {
		return false
	}
	return c.Status != metav1.ConditionTrue && (!IsDeferrable(c.Reason) || slices.Contains(lastingReasons, c.Reason))
}

// IsDeferrable reports whether a condition with this reason may be reported late.
func IsDeferrable(reason string) bool {
	return slices.ContainsFunc(slices.Concat(stages, otherConditions), func(s stage) bool { return slices.Contains(s.deferrable, reason) })
}
