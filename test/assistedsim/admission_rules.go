package assistedsim

import (
	"context"
	"net/http"
	"slices"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// defaultNetworking returns the default of userManagedNetworking that the mutating webhook sets. The default
// persists: a later change of platform or size conflicts with it.
func defaultNetworking(aci *hiveext.AgentClusterInstall) (value, ok bool) {
	if aci.Spec.Networking.UserManagedNetworking != nil || installationReason(aci) != "" || !aci.DeletionTimestamp.IsZero() {
		return false, false
	}
	switch aci.Spec.PlatformType {
	case hiveext.NonePlatformType, hiveext.ExternalPlatformType:
		return true, true
	}
	return singleNode(&aci.Spec), true
}

func singleNode(spec *hiveext.AgentClusterInstallSpec) bool {
	return spec.ProvisionRequirements.ControlPlaneAgents == 1 && spec.ProvisionRequirements.WorkerAgents == 0
}

// installationReason returns the reason of condition Completed once the installation has started. The webhook
// knows no other state.
func installationReason(aci *hiveext.AgentClusterInstall) string {
	for _, condition := range aci.Status.Conditions {
		if condition.Type == hiveext.ClusterCompletedCondition && slices.Contains([]string{
			hiveext.ClusterInstallationInProgressReason, hiveext.ClusterInstallationFailedReason, hiveext.ClusterInstalledReason,
		}, condition.Reason) {
			return condition.Reason
		}
	}
	return ""
}

func validateInstall(_ context.Context, before, after *hiveext.AgentClusterInstall) error {
	spec := &after.Spec
	managed := spec.Networking.UserManagedNetworking
	switch {
	case singleNode(spec) && managed != nil && !*managed:
		return refuse(http.StatusConflict, "UserManagedNetworking must be set to true with SNO")
	case spec.PlatformType == hiveext.NonePlatformType && managed != nil && !*managed:
		return refuse(http.StatusConflict, "Can't set none platform with user-managed-networking disabled")
	case spec.PlatformType == hiveext.BareMetalPlatformType && managed != nil && *managed:
		return refuse(http.StatusConflict, "Can't set baremetal platform with user-managed-networking enabled")
	case before == nil:
		return nil
	case !equality.Semantic.DeepEqual(before.Spec.ImageSetRef, spec.ImageSetRef):
		return refuse(http.StatusBadRequest, "Attempted to change AgentClusterInstall.Spec.ImageSetRef which is immutable")
	}
	return validateFrozenInstall(before, after)
}

// validateFrozenInstall denies nearly all changes once the installation has started.
func validateFrozenInstall(before, after *hiveext.AgentClusterInstall) error {
	reason := installationReason(after)
	if reason == "" {
		return nil
	}
	frozen := before.Spec.DeepCopy()
	frozen.ClusterMetadata, frozen.IgnitionEndpoint = after.Spec.ClusterMetadata, after.Spec.IgnitionEndpoint
	if reason != hiveext.ClusterInstallationInProgressReason {
		frozen.ProvisionRequirements = after.Spec.ProvisionRequirements
	}
	if !equality.Semantic.DeepEqual(*frozen, after.Spec) {
		return refuse(http.StatusBadRequest, "Attempted to change AgentClusterInstall.Spec which is immutable after install started, "+
			"except for ClusterMetadata,IgnitionEndpoint fields. Completed condition: %s", reason)
	}
	return nil
}

func (s *Simulator) validateInfraEnv(ctx context.Context, before, after *InfraEnv) error {
	both := after.Spec.ClusterRef != nil && after.Spec.OSImageVersion != ""
	switch {
	case before == nil && both:
		return refuse(http.StatusBadRequest, "Either Spec.ClusterRef or Spec.OSImageVersion should be specified (not both).")
	case before == nil:
		return nil
	case !equality.Semantic.DeepEqual(before.Spec.ClusterRef, after.Spec.ClusterRef):
		return refuse(http.StatusBadRequest, "Attempted to change Spec.ClusterRef which is immutable after InfraEnv creation.")
	case architecture(&before.Spec) != architecture(&after.Spec):
		return refuse(http.StatusBadRequest, "Attempted to change Spec.CpuArchitecture which is immutable after InfraEnv creation.")
	case both && before.Spec.OSImageVersion == "" && !s.markedInstalled(ctx, after.Spec.ClusterRef):
		return refuse(http.StatusBadRequest, "Either Spec.ClusterRef or Spec.OSImageVersion should be specified (not both).")
	}
	return nil
}

// markedInstalled reads a field of the ClusterDeployment that Hive writes, not the service.
func (s *Simulator) markedInstalled(ctx context.Context, ref *aiv1beta1.ClusterReference) bool {
	cd := &hivev1.ClusterDeployment{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, cd)
	return err == nil && cd.Spec.Installed
}

// frozenStates are the states in which the cluster of an Agent cannot change.
var frozenStates = []string{
	models.HostStatusPreparingForInstallation, models.HostStatusPreparingFailed, models.HostStatusPreparingSuccessful,
	models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction,
}

func validateAgent(_ context.Context, before, after *Agent) error {
	if after.Spec.InstallationDiskID != "" && after.Spec.InstallationDiskPath != "" {
		return refuse(http.StatusBadRequest, "installation_disk_id and installation_disk_path are mutually exclusive")
	}
	if before == nil || equality.Semantic.DeepEqual(before.Spec.ClusterDeploymentName, after.Spec.ClusterDeploymentName) {
		return nil
	}
	leavesDayTwo := after.Status.Kind == models.HostKindAddToExistingClusterHost && after.Spec.ClusterDeploymentName == nil
	if slices.Contains(frozenStates, after.Status.DebugInfo.State) && !leavesDayTwo {
		return refuse(http.StatusBadRequest, "Attempted to change Spec.ClusterDeploymentName which is immutable during installation. "+
			"Agent state: %s", after.Status.DebugInfo.State)
	}
	return nil
}
