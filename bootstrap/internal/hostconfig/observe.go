package hostconfig

import (
	"cmp"
	"context"

	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// observeInstallation reports the progress of the host's installation. Nothing is written to the Agent anymore.
func (r *Reconciler) observeInstallation(_ context.Context, s *scope) (bool, error) {
	const stage = bootstrapv1.HostInstalledCondition
	agent := s.agent
	info := agent.Status.DebugInfo
	message := assisted.RedactURLs(info.StateInfo)
	switch info.State {
	case models.HostStatusInstalled, models.HostStatusAddedToExistingCluster:
		s.reached(models.HostStageDone)
		s.queueEvent(corev1.EventTypeNormal, bootstrapv1.HostInstalledReason, "Agent %s is installed", agent.Name)
		s.pass(stage, "")
		return true, nil
	case models.HostStatusError, models.HostStatusCancelled:
		if recorded := s.Recorded(stage); recorded == nil || recorded.Reason != bootstrapv1.HostInstallationFailedReason {
			s.queueEvent(corev1.EventTypeWarning, bootstrapv1.HostInstallationFailedReason, "installation of Agent %s failed: %s", agent.Name, message)
		}
		return s.wait(stage, bootstrapv1.HostInstallationFailedReason, "assisted-service reports for Agent %s: %s", agent.Name, message)
	case models.HostStatusInstallingPendingUserAction:
		return s.wait(stage, bootstrapv1.HostBootedDiscoveryAgainReason, "Agent %s did not boot from its disk: %s: make the host boot from the disk that it was installed to", agent.Name, message)
	case models.HostStatusInstalling, models.HostStatusInstallingInProgress:
		s.reached(cmp.Or(agent.Status.Progress.CurrentStage, models.HostStageStartingInstallation))
		return s.wait(stage, bootstrapv1.HostInstallingReason, "Agent %s is being installed", agent.Name)
	case models.HostStatusDisconnected:
		_, _ = s.wait(stage, bootstrapv1.WaitingForHostReason, "Agent %s is out of touch with assisted-service: look at the host's console", agent.Name)
		return r.disconnected(s)
	case models.HostStatusInsufficient, models.HostStatusPendingForInput, models.HostStatusPreparingFailed:
		_, _ = s.wait(stage, bootstrapv1.WaitingForHostValidationReason, "%s", s.validationMessage(r.Clock.Now()))
		return r.disconnected(s)
	}
	// assisted-service clears its status while its database is unavailable.
	if info.State == "" {
		return s.wait(stage, bootstrapv1.WaitingForInstallationReason, "waiting for assisted-service to tell the state of Agent %s", agent.Name)
	}
	return s.wait(stage, bootstrapv1.WaitingForInstallationReason, "waiting for assisted-service to start the installation")
}

// reached sets the stage of the host in the status. The Agent may be behind its own state. So the start and the
// percentage of the stage are set only if the Agent reports the same stage. Values that tick within a stage are
// left out, because each tick would be a write.
func (s *scope) reached(stage models.HostStage) {
	progress := &s.agent.Status.Progress
	s.status.InstallationProgress, s.status.InstallationStageStartTime, s.status.InstallationPercentage = bound.Value(string(stage)), nil, nil
	if progress.CurrentStage == stage {
		s.status.InstallationStageStartTime = progress.StageStartTime.DeepCopy()
		s.status.InstallationPercentage = ptr.To(int32(min(max(progress.InstallationPercentage, 0), 100))) //nolint:gosec // within 0..100
	}
}
