package facts

import (
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// Role is the one that the host plays in the cluster.
func (f *Facts) Role() models.HostRole {
	if _, controlPlane := f.Machine.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
		return models.HostRoleWorker
	}
	if f.meantForArbiter() {
		return models.HostRoleArbiter
	}
	return models.HostRoleMaster
}

func (f *Facts) meantForArbiter() bool { return f.Config.Spec.Role == bootstrapv1.HostRoleArbiter }

// RoleContradiction says what speaks against the role that the host is to play; empty: nothing. A host of the wrong role could not be made another without being installed again.
func (f *Facts) RoleContradiction() string {
	_, marked := f.Config.Labels[bootstrapv1.ArbiterLabel]
	switch {
	case f.meantForArbiter() && f.Role() != models.HostRoleArbiter:
		return fmt.Sprintf("spec.role is %s, but Machine %s is none of a control plane: it lacks the label %s. If it is, restore the label. Else delete the Machine, which wipes its host, and leave spec.role to the control plane provider",
			bootstrapv1.HostRoleArbiter, f.Machine.Name, clusterv1.MachineControlPlaneLabel)
	case f.meantForArbiter() && f.withArbiter() && f.Install.Spec.ProvisionRequirements.ArbiterAgents == 0:
		return fmt.Sprintf("the host becomes an arbiter, of which AgentClusterInstall %s has no number (spec.provisionRequirements.arbiterAgents): the assisted-service of this hub, or its "+
			"CustomResourceDefinitions, is from before arbiters: upgrade it", f.Install.Name)
	case f.meantForArbiter() && f.Install != nil && f.Install.Spec.ProvisionRequirements.ArbiterAgents == 0:
		return fmt.Sprintf("spec.role is %s, but AgentClusterInstall %s counts no arbiters (spec.provisionRequirements.arbiterAgents is 0): if spec.arbiter of the control plane is not set, delete Machine %s, "+
			"which wipes its host; another takes its place. Else see the condition Installed of the control plane", bootstrapv1.HostRoleArbiter, f.Install.Name, f.Machine.Name)
	case marked && f.Role() == models.HostRoleMaster:
		return fmt.Sprintf("the label %s says that the host becomes an arbiter, but spec.role does not: remove the label, and it becomes a master; or delete Machine %s, which wipes its host, and one of the missing role takes its place",
			bootstrapv1.ArbiterLabel, f.Machine.Name)
	}
	return ""
}

// TwoNodes reports whether the cluster is one of two nodes that fence each other: so assisted-service takes two masters without an arbiter. The number of arbiters is no proof that there is none: a hub whose
// AgentClusterInstalls have no such field drops it.
func (f *Facts) TwoNodes() bool {
	if f.Install == nil || f.withArbiter() {
		return false
	}
	wanted := f.Install.Spec.ProvisionRequirements
	return wanted.ControlPlaneAgents == 2 && wanted.ArbiterAgents == 0
}

// withArbiter reports whether the control plane provider says that the cluster has an arbiter.
func (f *Facts) withArbiter() bool {
	return f.Install != nil && metav1.HasAnnotation(f.Install.ObjectMeta, bootstrapv1.ClusterWithArbiterAnnotation)
}

// Fenced reports whether the Machine's host is fenced by the other node of its cluster.
func (f *Facts) Fenced() bool {
	return f.Machine != nil && f.TwoNodes() && f.Role() == models.HostRoleMaster
}

// FencingSecretName is the name of the Secret by which assisted-service learns the credentials of the host's BMC.
func (f *Facts) FencingSecretName() string { return f.Config.Name + "-fencing-credentials" }

// Runs reports whether the cluster is installed, also while assisted-service does not say so: its database may be away.
func (f *Facts) Runs() bool { return f.Installation().DayTwo || f.ControlPlaneRuns }

// FollowsRelease reports whether the discovery image has to be that of the running release: of a host that joins an installed cluster, until it may be booting.
func (f *Facts) FollowsRelease() bool {
	return f.Runs() && !f.WasInstalled() && (f.Namesake == nil || !f.DataHandedOut())
}

// ReleaseOf is the release that a control plane runs, by its Machines: while it is upgraded, the oldest. Empty when none tells it.
func ReleaseOf(machines []clusterv1.Machine) string {
	var oldest semver.Version
	release := ""
	for i := range machines {
		version, err := semver.ParseTolerant(machines[i].Spec.Version)
		if err == nil && (release == "" || version.LT(oldest)) {
			oldest, release = version, machines[i].Spec.Version
		}
	}
	return release
}

// ServerCA are the certificates (PEM) by which a host that joins an installed cluster recognises its machine config server; empty: none are known, or needed.
func (f *Facts) ServerCA() string {
	if !f.Installation().DayTwo {
		return ""
	}
	return f.Install.Annotations[bootstrapv1.MachineConfigServerCAAnnotation]
}

// GivenUp reports whether the installation failed and is given up: its hosts have no Nodes.
func (f *Facts) GivenUp() bool {
	return f.Install != nil && metav1.HasAnnotation(f.Install.ObjectMeta, bootstrapv1.InstallationGivenUpAnnotation) && f.Installation().Phase == assisted.PhaseFailed
}

// NotOurs says why no host may be installed into the ClusterDeployment and the AgentClusterInstall, as far as they exist: they do not stand for the Machine's Cluster, or no longer. It is empty when
// they do; foreign is true where the user has to act.
func (f *Facts) NotOurs() (obstacle string, foreign bool) {
	owner := contract.OwnerOf(f.Cluster)
	if f.Deployment != nil {
		if obstacle = owner.Blocker("ClusterDeployment", f.Deployment); obstacle != "" {
			return obstacle, owner.ClaimOf(f.Deployment) == contract.Foreign
		}
	}
	if f.Install != nil {
		obstacle = owner.Blocker("AgentClusterInstall", f.Install)
		return obstacle, owner.ClaimOf(f.Install) == contract.Foreign
	}
	return "", false
}

// Installation is what assisted-service says of the cluster.
func (f *Facts) Installation() assisted.Installation { return assisted.Observe(f.Install) }

// ClusterName returns the name of the Cluster that the Machine belongs to, or that the label of a config without Machine names; empty when neither is known.
func (f *Facts) ClusterName() string {
	if f.Machine != nil {
		return f.Machine.Spec.ClusterName
	}
	return f.Config.Labels[clusterv1.ClusterNameLabel]
}

// ClusterDeleting reports whether the whole cluster goes, so that nothing needs to be cleaned up inside it.
func (f *Facts) ClusterDeleting() bool {
	return f.Cluster == nil || !f.Cluster.DeletionTimestamp.IsZero()
}

// NotAccepted says why the cluster does not take the host now; it is empty when it does. Before the installation the cluster takes only workers
// that it counts, and a single node is installed alone: assisted-service never starts with one known host more than it was told of.
func (f *Facts) NotAccepted() string {
	installation := f.Installation()
	switch {
	case f.TwoNodes() && f.Role() == models.HostRoleWorker:
		return "the cluster is one of two nodes with fencing, which has no workers: if it is, delete the MachineDeployment, which wipes the hosts of its Machines"
	case !installation.AcceptsHosts:
		return fmt.Sprintf("the cluster does not accept hosts in state %q", installation.State)
	case !installation.DayTwo && f.Role() == models.HostRoleWorker && f.Install.Spec.ProvisionRequirements.WorkerAgents == 0:
		return "the cluster is installed without workers"
	}
	return ""
}

// Reregistered reports whether assisted-service treats an installed cluster as a cluster that can still be installed. assisted-service would install a bound host
// into a cluster that does not exist.
func (f *Facts) Reregistered() bool {
	installation := f.Installation()
	return installation.Registered && !installation.Started && (f.ControlPlaneRuns || f.Deployment != nil && f.Deployment.Spec.Installed)
}
