package facts

import (
	"cmp"
	"slices"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// stagesFromReboot are the stages in which a host boots, or has booted, its installed disk.
var stagesFromReboot = []aiv1beta1.HostStage{
	aiv1beta1.HostStageRebooting, aiv1beta1.HostStageWaitingForIgnition, aiv1beta1.HostStageConfiguring,
	aiv1beta1.HostStageJoined, aiv1beta1.HostStageDone,
}

// beforeInstallation are the states of a bound host before its installation.
var beforeInstallation = []string{
	aiv1beta1.HostStatusBinding,
	aiv1beta1.HostStatusDiscovering,
	aiv1beta1.HostStatusKnown,
	aiv1beta1.HostStatusInsufficient,
	aiv1beta1.HostStatusPendingForInput,
	aiv1beta1.HostStatusDisconnected,
}

// Bound reports whether the Agent belongs to a cluster by its spec.
func Bound(agent *aiv1beta1.Agent) bool { return agent.Spec.ClusterDeploymentName != nil }

// BoundByUs reports whether this provider bound the Agent. The binding writes all settings of the host at
// once, and the ignition override is never empty.
func BoundByUs(agent *aiv1beta1.Agent) bool {
	return Bound(agent) && agent.Spec.IgnitionConfigOverrides != ""
}

// Unbound reports whether assisted-service reports the host as unbound.
func Unbound(agent *aiv1beta1.Agent) bool {
	return strings.HasSuffix(agent.Status.DebugInfo.State, "-unbound")
}

// Untouched reports whether the installation of the bound host of an Agent has not started. Unbinding an
// installed host would wipe it.
func Untouched(agent *aiv1beta1.Agent) bool {
	return slices.Contains(beforeInstallation, agent.Status.DebugInfo.State)
}

// Unfinished returns the state of a host that has a next step: it reports its hardware, is bound, validated or
// installed. It returns "" for a host that waits for other hosts or users, and for one that has reached an end.
func Unfinished(agent *aiv1beta1.Agent) string {
	state := agent.Status.DebugInfo.State
	switch state {
	case aiv1beta1.HostStatusKnown, aiv1beta1.HostStatusKnownUnbound:
		if assisted.HasInventory(agent) {
			return ""
		}
	case aiv1beta1.HostStatusInstalled, aiv1beta1.HostStatusAddedToExistingCluster, aiv1beta1.HostStatusCanceled, aiv1beta1.HostStatusError:
		return ""
	}
	if !agent.DeletionTimestamp.IsZero() {
		return ""
	}
	return cmp.Or(state, "unknown") + " " + string(agent.Status.Progress.CurrentStage)
}

// Installed reports whether assisted-service has finished the installation of the host of an Agent.
func Installed(agent *aiv1beta1.Agent) bool {
	return agent.Status.DebugInfo.State == aiv1beta1.HostStatusInstalled ||
		agent.Status.DebugInfo.State == aiv1beta1.HostStatusAddedToExistingCluster
}

// InUse returns why an Agent shows that its server is in use, for messages; "" if it does not. An Agent that
// is being deleted belongs to a former Machine.
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

// BootedItsDisk reports whether the host boots, or has booted, its installed disk.
func BootedItsDisk(agent *aiv1beta1.Agent) bool {
	return slices.Contains(stagesFromReboot, agent.Status.Progress.CurrentStage)
}

// InfraEnvOf returns the name of the InfraEnv from which the host of an Agent booted.
func InfraEnvOf(agent *aiv1beta1.Agent) string { return agent.Labels[aiv1beta1.InfraEnvNameLabel] }

// OwnInfraEnv reports whether an InfraEnv of this name belongs to the Machine.
func (f *Facts) OwnInfraEnv(name string) bool {
	return slices.ContainsFunc(f.InfraEnvs, func(e *aiv1beta1.InfraEnv) bool { return e.Name == name })
}

// IsRecorded reports whether the status records the Agent as the Machine's.
func (f *Facts) IsRecorded(agent *aiv1beta1.Agent) bool {
	known := f.Config.Status.AgentRef
	return known != nil && known.Name == agent.Name
}

// RegisteredBeforeData reports whether an Agent registered before the bootstrap data existed, if only the
// data identifies the host. Its server then did not get the data. Both times are those of the API server. An
// Agent that was accepted before stays the Machine's.
func (f *Facts) RegisteredBeforeData(agent *aiv1beta1.Agent) bool {
	return !f.wasAccepted(agent) && f.DataSecret != nil && agent.CreationTimestamp.Before(&f.DataSecret.CreationTimestamp)
}

// DataAgeUnknown reports whether it is unknown if an Agent registered before the bootstrap data existed. The
// cache has no such Secret yet, or the Secret was deleted.
func (f *Facts) DataAgeUnknown(agent *aiv1beta1.Agent) bool {
	return !f.wasAccepted(agent) && f.DataSecret == nil
}

func (f *Facts) wasAccepted(agent *aiv1beta1.Agent) bool {
	return f.HasBareMetalHost() || f.IsRecorded(agent) || BoundByUs(agent) || Bound(agent) && agent.Spec.Approved
}

// ApprovedAgent returns the Agent that was identified and approved; nil if there is none.
func (f *Facts) ApprovedAgent() *aiv1beta1.Agent {
	for _, agent := range f.Agents {
		if f.IsRecorded(agent) && Bound(agent) && agent.Spec.Approved {
			return agent
		}
	}
	return nil
}

// MayBeHost reports whether an Agent is, or may turn out to be, on the Machine's host. Its image is then not
// changed. Another server that booted the image does not count.
func (f *Facts) MayBeHost(agent *aiv1beta1.Agent) bool {
	return !assisted.HasInventory(agent) || f.appearsToBeHost(agent)
}

// appearsToBeHost reports whether an Agent was accepted as the Machine's before, or matches the host by its
// reported hardware.
func (f *Facts) appearsToBeHost(agent *aiv1beta1.Agent) bool {
	return Bound(agent) || agent.Spec.Approved || f.IsRecorded(agent) ||
		assisted.HasInventory(agent) && !f.RegisteredBeforeData(agent) && (f.Host == nil || f.Mismatch(agent) == "")
}

// Mismatch returns why an Agent does not run on the Machine's host, for messages; "" if it does.
func (f *Facts) Mismatch(agent *aiv1beta1.Agent) string {
	return metal3.IdentityOf(f.Host).MismatchIgnoringShared(f.Shared, metal3.AgentIdentity(agent))
}

// BoundElsewhere reports whether an Agent belongs to another cluster than the Machine.
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
	return slices.Contains(f.ForeignDeployments, ref.Name)
}

// MayHaveNode reports whether the cluster may have a Node of the host. assisted-service does not update an
// Agent that is being deleted, and clears its state when the database is unavailable. The recorded progress
// then decides.
func (f *Facts) MayHaveNode(agent *aiv1beta1.Agent) bool {
	if f.WasInstalled() || Installed(agent) {
		return true
	}
	if f.GivenUp() {
		return false
	}
	switch agent.Status.DebugInfo.State {
	case aiv1beta1.HostStatusInstalling, aiv1beta1.HostStatusInstallingInProgress, aiv1beta1.HostStatusInstallingPendingUserAction:
		return BootedItsDisk(agent) || f.Installation().Phase != assisted.PhaseFailed
	case aiv1beta1.HostStatusError, aiv1beta1.HostStatusCanceled:
		return BootedItsDisk(agent)
	case "":
		return f.Config.Status.InstallationProgress != ""
	}
	return false
}
