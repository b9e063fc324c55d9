package binding

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Observe reports the progress of the host's installation. Nothing is written to the Agent anymore.
func (b *Binder) Observe(_ context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.HostInstalledCondition
	agent := s.Agent
	info := agent.Status.DebugInfo
	message := assisted.RedactURLs(info.StateInfo)
	switch info.State {
	case aiv1beta1.HostStatusInstalled, aiv1beta1.HostStatusAddedToExistingCluster:
		Reached(s, aiv1beta1.HostStageDone)
		s.StatusEvent(corev1.EventTypeNormal, bootstrapv1.HostInstalledReason, "Host %s is installed", hostOf(s))
		s.Pass(stage, "")
		return true, nil
	case aiv1beta1.HostStatusError, aiv1beta1.HostStatusCanceled:
		return s.Blockf(stage, bootstrapv1.HostInstallationFailedReason, "assisted-service reports for %s: %s", s.DescribeHost(agent),
			message), nil
	case aiv1beta1.HostStatusInstallingPendingUserAction:
		return s.Blockf(stage, bootstrapv1.HostBootedDiscoveryAgainReason,
			"%s did not boot from its disk: %s: boot the host from the disk on which it was installed", s.DescribeHost(agent), message), nil
	case aiv1beta1.HostStatusInstalling, aiv1beta1.HostStatusInstallingInProgress:
		Reached(s, cmp.Or(agent.Status.Progress.CurrentStage, aiv1beta1.HostStageStartingInstallation))
		return s.Blockf(stage, bootstrapv1.HostInstallingReason, "%s is being installed", s.DescribeHost(agent)), nil
	case aiv1beta1.HostStatusDisconnected:
		s.Blockf(stage, bootstrapv1.WaitingForHostReason, "%s has lost contact with assisted-service. Check its console",
			s.DescribeHost(agent))
		return s.Disconnected(stage, b.clock.Now()), nil
	case aiv1beta1.HostStatusInsufficient, aiv1beta1.HostStatusPendingForInput, aiv1beta1.HostStatusPreparingFailed:
		s.Block(stage, bootstrapv1.WaitingForHostValidationReason, validationMessage(s, b.clock.Now()))
		return s.Disconnected(stage, b.clock.Now()), nil
	}
	// assisted-service clears its status while its database is unavailable.
	if info.State == "" {
		return s.Blockf(stage, bootstrapv1.WaitingForInstallationReason, "waiting for assisted-service to report the state of %s",
			s.DescribeHost(agent)), nil
	}
	return s.Blockf(stage, bootstrapv1.WaitingForInstallationReason, "waiting for assisted-service to start the installation"), nil
}

// hostOf returns the name of the host for an Event, or that of its Agent if the host has none.
func hostOf(s *scope.Scope) string { return cmp.Or(s.HostName(s.Agent), s.Agent.Name) }

// Reached sets the stage of the host in the status. The Agent may be behind its own state. So the start and the
// percentage of the stage are set only if the Agent reports the same stage. Values that tick within a stage are
// left out, because each tick would be a write.
func Reached(s *scope.Scope, stage aiv1beta1.HostStage) {
	progress := &s.Agent.Status.Progress
	s.Status.InstallationProgress, s.Status.InstallationStageStartTime, s.Status.InstallationPercentage = bound.Value(string(stage)), nil, nil
	if progress.CurrentStage == stage {
		s.Status.InstallationStageStartTime = progress.StageStartTime.DeepCopy()
		s.Status.InstallationPercentage = ptr.To(int32(min(max(progress.InstallationPercentage, 0), 100))) //nolint:gosec // within 0..100
	}
}
