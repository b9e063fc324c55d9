package facts

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// Role returns the role of the host in the cluster.
func (f *Facts) Role() aiv1beta1.HostRole {
	if _, controlPlane := f.Machine.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
		return aiv1beta1.HostRoleWorker
	}
	if f.isArbiter() {
		return aiv1beta1.HostRoleArbiter
	}
	return aiv1beta1.HostRoleMaster
}

func (f *Facts) isArbiter() bool { return f.Config.Spec.Role == bootstrapv1.HostRoleArbiter }

// RoleConflict returns what contradicts the role of the host, for messages; "" if nothing does. A host with
// the wrong role can only change it by a reinstallation.
func (f *Facts) RoleConflict() string {
	_, marked := f.Config.Labels[bootstrapv1.ArbiterLabel]
	switch {
	case f.isArbiter() && f.Role() != aiv1beta1.HostRoleArbiter:
		return fmt.Sprintf(
			"spec.role is %s, but Machine %s does not belong to a control plane: it lacks the label %s. If it does, restore the label. Else "+
				"delete the Machine, which wipes its host, and leave spec.role to the control plane provider",
			bootstrapv1.HostRoleArbiter,
			f.Machine.Name,
			clusterv1.MachineControlPlaneLabel,
		)
	case f.isArbiter() && f.withArbiter() && f.Install.Spec.ProvisionRequirements.ArbiterAgents == 0:
		return fmt.Sprintf(
			"AgentClusterInstall %s has no field spec.provisionRequirements.arbiterAgents for this arbiter: the assisted-service of "+
				"this hub, or its CustomResourceDefinitions, is from before arbiters: upgrade it",
			f.Install.Name,
		)
	case f.isArbiter() && f.Install != nil && f.Install.Spec.ProvisionRequirements.ArbiterAgents == 0:
		return fmt.Sprintf(
			"spec.role is %s, but AgentClusterInstall %s counts no arbiters (spec.provisionRequirements.arbiterAgents is 0): if spec.arbiter "+
				"of the control plane is not set, delete Machine %s, "+
				"which wipes its host; another takes its place. Else see the condition Installed of the control plane",
			bootstrapv1.HostRoleArbiter,
			f.Install.Name,
			f.Machine.Name,
		)
	case marked && f.Role() == aiv1beta1.HostRoleMaster:
		return fmt.Sprintf(
			"the label %s marks an arbiter, but spec.role does not: remove the label, and it becomes a master; or delete Machine %s, which "+
				"wipes its host, and one of the missing role takes its place",
			bootstrapv1.ArbiterLabel,
			f.Machine.Name,
		)
	}
	return ""
}

// TwoNodes reports whether the cluster is a two-node cluster with fencing, which assisted-service derives
// from two masters without an arbiter. The number of arbiters alone proves nothing: a hub whose
// AgentClusterInstalls lack the field drops it.
func (f *Facts) TwoNodes() bool {
	if f.Install == nil || f.withArbiter() {
		return false
	}
	wanted := f.Install.Spec.ProvisionRequirements
	return wanted.ControlPlaneAgents == 2 && wanted.ArbiterAgents == 0
}

// withArbiter reports whether the control plane provider marks the cluster as one with an arbiter.
func (f *Facts) withArbiter() bool {
	return f.Install != nil && metav1.HasAnnotation(f.Install.ObjectMeta, bootstrapv1.ClusterWithArbiterAnnotation)
}

// Fenced reports whether the other node of the cluster fences the Machine's host.
func (f *Facts) Fenced() bool {
	return f.Machine != nil && f.TwoNodes() && f.Role() == aiv1beta1.HostRoleMaster
}

// FencingSecretName returns the name of the Secret from which assisted-service reads the credentials of the
// host's BMC.
func (f *Facts) FencingSecretName() string { return f.Config.Name + "-fencing-credentials" }

// Runs reports whether the cluster is installed, even if assisted-service does not report it because its
// database is unavailable.
func (f *Facts) Runs() bool { return f.Installation().DayTwo || f.ControlPlaneRuns }

// FollowsRelease reports whether the discovery image must be that of the running release. This is the case
// for a host that joins an installed cluster, until it may be booting.
func (f *Facts) FollowsRelease() bool {
	return f.Runs() && !f.WasInstalled() && (f.Namesake == nil || !f.DataHandedOut())
}

// RunningRelease returns the release of an installed cluster that the control plane provider reports. It is "" if it reports
// none, or if the discovery image no longer follows the release.
func (f *Facts) RunningRelease() string {
	if f.Install == nil || !f.FollowsRelease() {
		return ""
	}
	return f.Install.Annotations[bootstrapv1.RunningReleaseAnnotation]
}

// ServerCA returns the certificates (PEM) with which a host that joins an installed cluster verifies its
// machine config server. It is empty if they are unknown or not needed.
func (f *Facts) ServerCA() string {
	if !f.Installation().DayTwo {
		return ""
	}
	return f.Install.Annotations[bootstrapv1.MachineConfigServerCAAnnotation]
}

// GivenUp reports whether the installation failed and is given up: its hosts have no Nodes.
func (f *Facts) GivenUp() bool {
	return f.Install != nil && metav1.HasAnnotation(f.Install.ObjectMeta, bootstrapv1.InstallationGivenUpAnnotation) &&
		f.Installation().Phase == assisted.PhaseFailed
}

// ClusterBlocker returns why no host may be installed into the existing ClusterDeployment and
// AgentClusterInstall. They do not belong to the Machine's Cluster, or no longer. It is "" if they do. The
// result foreign is true if the user has to act.
func (f *Facts) ClusterBlocker() (blocker string, foreign bool) {
	owner := contract.OwnerOf(f.Cluster)
	if f.Deployment != nil {
		if blocker = owner.Blocker("ClusterDeployment", f.Deployment); blocker != "" {
			return blocker, owner.ClaimOf(f.Deployment) == contract.Foreign
		}
	}
	if f.Install != nil {
		blocker = owner.Blocker("AgentClusterInstall", f.Install)
		return blocker, owner.ClaimOf(f.Install) == contract.Foreign
	}
	return "", false
}

// Installation returns the state of the installation of the cluster in assisted-service.
func (f *Facts) Installation() assisted.Installation { return assisted.Observe(f.Install) }

// ClusterName returns the name of the Machine's Cluster, or of the Cluster label of a config without Machine;
// "" if neither is known.
func (f *Facts) ClusterName() string {
	if f.Machine != nil {
		return f.Machine.Spec.ClusterName
	}
	return f.Config.Labels[clusterv1.ClusterNameLabel]
}

// ClusterDeleting reports whether the whole cluster is being deleted, so that no clean-up inside it is
// needed.
func (f *Facts) ClusterDeleting() bool {
	return f.Cluster == nil || !f.Cluster.DeletionTimestamp.IsZero()
}

// AcceptanceBlocker returns why the cluster does not accept the host now; "" if it does. Before the
// installation the cluster accepts only workers that it counts, and a single node is installed alone.
// assisted-service never starts with more known hosts than were announced.
func (f *Facts) AcceptanceBlocker() string {
	installation := f.Installation()
	switch {
	case f.TwoNodes() && f.Role() == aiv1beta1.HostRoleWorker:
		return "a two-node cluster with fencing has no workers: if this cluster is one, " +
			"delete the MachineDeployment, which wipes the hosts of its Machines"
	case !installation.AcceptsHosts:
		return fmt.Sprintf("the cluster does not accept hosts in state %q", installation.State)
	case !installation.DayTwo && f.Role() == aiv1beta1.HostRoleWorker && f.Install.Spec.ProvisionRequirements.WorkerAgents == 0:
		return "the cluster is installed without workers"
	}
	return ""
}

// Reregistered reports whether assisted-service treats an installed cluster as a cluster that can still be
// installed. assisted-service would install a bound host into a cluster that does not exist.
func (f *Facts) Reregistered() bool {
	installation := f.Installation()
	return installation.Registered && !installation.Started && (f.ControlPlaneRuns || f.Deployment != nil && f.Deployment.Spec.Installed)
}
