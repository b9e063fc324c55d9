// Package joining concludes from the facts of a reconcile whether the cluster accepts a host, and what a host needs to join
// an installed cluster. It has no client.
package joining

import (
	"fmt"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/hostrole"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// Runs reports whether the cluster is installed, even if assisted-service does not report it because its
// database is unavailable.
func Runs(f *facts.Facts) bool { return f.Installation().DayTwo || f.ControlPlaneRuns }

// FollowsRelease reports whether the discovery image must be that of the running release. This is the case
// for a host that joins an installed cluster, until it may be booting.
func FollowsRelease(f *facts.Facts) bool {
	return Runs(f) && !f.WasInstalled() && (f.Namesake == nil || !f.DataHandedOut())
}

// RunningRelease returns the release of an installed cluster that the control plane provider reports. It is "" if it reports
// none, or if the discovery image no longer follows the release.
func RunningRelease(f *facts.Facts) string {
	if f.Install == nil || !FollowsRelease(f) {
		return ""
	}
	return f.Install.Annotations[bootstrapv1.RunningReleaseAnnotation]
}

// ServerCA returns the certificates (PEM) with which a host that joins an installed cluster verifies its
// machine config server. It is empty if they are unknown or not needed.
func ServerCA(f *facts.Facts) string {
	if !f.Installation().DayTwo {
		return ""
	}
	return f.Install.Annotations[bootstrapv1.MachineConfigServerCAAnnotation]
}

// ClusterBlocker returns why no host may be installed into the existing ClusterDeployment and
// AgentClusterInstall. They do not belong to the Machine's Cluster, or no longer. It is "" if they do. The
// result foreign is true if the user has to act.
func ClusterBlocker(f *facts.Facts) (blocker string, foreign bool) {
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

// AcceptanceBlocker returns why the cluster does not accept the host now; "" if it does. Before the
// installation the cluster accepts only workers that it counts, and a single node is installed alone.
// assisted-service never starts with more known hosts than were announced.
func AcceptanceBlocker(f *facts.Facts) string {
	installation := f.Installation()
	switch {
	case hostrole.TwoNodes(f) && hostrole.Of(f) == aiv1beta1.HostRoleWorker:
		return "a two-node cluster with fencing has no workers: if this cluster is one, " +
			"delete the MachineDeployment, which wipes the hosts of its Machines"
	case !installation.AcceptsHosts:
		return fmt.Sprintf("the cluster does not accept hosts in state %q", installation.State)
	case !installation.DayTwo && hostrole.Of(f) == aiv1beta1.HostRoleWorker && f.Install.Spec.ProvisionRequirements.WorkerAgents == 0:
		return "the cluster is installed without workers"
	}
	return ""
}

// Reregistered reports whether assisted-service treats an installed cluster as a cluster that can still be
// installed. assisted-service would install a bound host into a cluster that does not exist.
func Reregistered(f *facts.Facts) bool {
	installation := f.Installation()
	return installation.Registered && !installation.Started && (f.ControlPlaneRuns || f.Deployment != nil && f.Deployment.Spec.Installed)
}
