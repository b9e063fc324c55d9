package facts

import (
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// stagesFromReboot are those in which a host boots, or has booted, what was installed on it.
var stagesFromReboot = []models.HostStage{
	models.HostStageRebooting, models.HostStageWaitingForIgnition, models.HostStageConfiguring, models.HostStageJoined, models.HostStageDone,
}

// beforeInstallation are the states of a bound host in which nothing has been done to it.
var beforeInstallation = []string{
	models.HostStatusBinding, models.HostStatusDiscovering, models.HostStatusKnown, models.HostStatusInsufficient, models.HostStatusPendingForInput,
	models.HostStatusDisconnected,
}

// Bound reports whether the Agent is to be part of a cluster.
func Bound(agent *aiv1beta1.Agent) bool { return agent.Spec.ClusterDeploymentName != nil }

// BoundByUs reports whether this provider bound the Agent. The binding writes all settings of the host at once, and the ignition override is never empty.
func BoundByUs(agent *aiv1beta1.Agent) bool {
	return Bound(agent) && agent.Spec.IgnitionConfigOverrides != ""
}

// Unbound reports whether assisted-service has the host as one that belongs to no cluster.
func Unbound(agent *aiv1beta1.Agent) bool {
	return strings.HasSuffix(agent.Status.DebugInfo.State, "-unbound")
}

// Untouched reports whether nothing has been done to the bound host of an Agent. Unbinding one that is installed would wipe it.
func Untouched(agent *aiv1beta1.Agent) bool {
	return slices.Contains(beforeInstallation, agent.Status.DebugInfo.State)
}

// Installed reports whether assisted-service is done with the host of an Agent.
func Installed(agent *aiv1beta1.Agent) bool {
	return agent.Status.DebugInfo.State == models.HostStatusInstalled || agent.Status.DebugInfo.State == models.HostStatusAddedToExistingCluster
}

// InUse states, for users, by what an Agent shows that its server is in use; empty when the Agent shows nothing. One that is being deleted is what is left of a former Machine.
func InUse(agent *aiv1beta1.Agent) string {
	switch ref := agent.Spec.ClusterDeploymentName; {
	case !agent.DeletionTimestamp.IsZero():
		return ""
	case ref != nil && Installed(agent):
		return "is installed in ClusterDeployment " + ref.Name
	case ref != nil:
		return "is bound to ClusterDeployment " + ref.Name
	case Installed(agent):
		return "is installed"
	case agent.Spec.Approved:
		return "is approved"
	}
	return ""
}

// BootedItsDisk reports whether the host boots, or has booted, what was installed on it.
func BootedItsDisk(agent *aiv1beta1.Agent) bool {
	return slices.Contains(stagesFromReboot, agent.Status.Progress.CurrentStage)
}

// InfraEnvOf is the name of the InfraEnv from which the host of an Agent booted.
func InfraEnvOf(agent *aiv1beta1.Agent) string { return agent.Labels[aiv1beta1.InfraEnvNameLabel] }

// OwnInfraEnv reports whether an InfraEnv, by its name, is one of the Machine's.
func (f *Facts) OwnInfraEnv(name string) bool {
	return slices.ContainsFunc(f.InfraEnvs, func(e *assisted.InfraEnv) bool { return e.Name == name })
}

// Known reports whether the Agent is the one that was recorded as the Machine's.
func (f *Facts) Known(agent *aiv1beta1.Agent) bool {
	known := f.Config.Status.AgentRef
	return known != nil && known.Name == agent.Name
}

// RegisteredBeforeData reports whether an Agent registered before the bootstrap data existed, where the data is all that identifies a host: then its server is not the one that was given the data. Both
// times are the API server's. An Agent that was taken for the host before stays the host.
func (f *Facts) RegisteredBeforeData(agent *aiv1beta1.Agent) bool {
	return !f.takenForHost(agent) && f.DataSecret != nil && agent.CreationTimestamp.Before(&f.DataSecret.CreationTimestamp)
}

// DataAgeUnknown reports whether nothing shows if an Agent registered before the bootstrap data existed: the cache has no such Secret yet, or the Secret was deleted.
func (f *Facts) DataAgeUnknown(agent *aiv1beta1.Agent) bool {
	return !f.takenForHost(agent) && f.DataSecret == nil
}

func (f *Facts) takenForHost(agent *aiv1beta1.Agent) bool {
	return f.HasBareMetalHost() || f.Known(agent) || BoundByUs(agent) || Bound(agent) && agent.Spec.Approved
}

// ApprovedAgent returns the Agent that was identified and approved before; nil when there is none.
func (f *Facts) ApprovedAgent() *aiv1beta1.Agent {
	for _, agent := range f.Agents {
		if f.Known(agent) && Bound(agent) && agent.Spec.Approved {
			return agent
		}
	}
	return nil
}

// MayBeHost reports whether an Agent is, or may turn out to be, the Machine's host: what it booted is left alone. What booted the image and is somebody
// else does not count.
func (f *Facts) MayBeHost(agent *aiv1beta1.Agent) bool {
	return !assisted.HasInventory(agent) || f.seemsHost(agent)
}

// seemsHost reports whether an Agent was taken for the Machine's host before, or is by what it has told of its hardware.
func (f *Facts) seemsHost(agent *aiv1beta1.Agent) bool {
	return Bound(agent) || agent.Spec.Approved || f.Known(agent) || assisted.HasInventory(agent) && !f.RegisteredBeforeData(agent) && (f.Host == nil || f.Mismatch(agent) == "")
}

// Mismatch says why the machine on which an Agent runs is not the Machine's host, in words for people; empty when it is.
func (f *Facts) Mismatch(agent *aiv1beta1.Agent) string {
	return metal3.IdentityOf(f.Host).MismatchIgnoringShared(f.Shared, metal3.AgentIdentity(agent))
}

// BoundElsewhere reports whether an Agent belongs to another cluster than the Machine's.
func (f *Facts) BoundElsewhere(agent *aiv1beta1.Agent) bool {
	ref := agent.Spec.ClusterDeploymentName
	switch {
	case ref == nil:
		return false
	case ref.Namespace != f.Config.Namespace:
		return true
	case f.Cluster != nil:
		return ref.Name != f.Cluster.Spec.ControlPlaneRef.Name
	}
	return slices.Contains(f.OthersDeployments, ref.Name)
}

// MayHaveNode reports whether the cluster may know a Node of the host. assisted-service does not update the Agent that it deletes, and clears its state
// when its database is away: then what was recorded before decides.
func (f *Facts) MayHaveNode(agent *aiv1beta1.Agent) bool {
	if f.WasInstalled() || Installed(agent) {
		return true
	}
	if f.GivenUp() {
		return false
	}
	switch agent.Status.DebugInfo.State {
	case models.HostStatusInstalling, models.HostStatusInstallingInProgress, models.HostStatusInstallingPendingUserAction:
		return BootedItsDisk(agent) || f.Installation().Phase != assisted.PhaseFailed
	case models.HostStatusError, models.HostStatusCancelled:
		return BootedItsDisk(agent)
	case "":
		return f.Config.Status.InstallationProgress != ""
	}
	return false
}
