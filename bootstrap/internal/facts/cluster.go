package facts

import (
	"fmt"

	"github.com/openshift/assisted-service/models"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// Role is the one that the host plays in the cluster.
func (f *Facts) Role() models.HostRole {
	if _, ok := f.Machine.Labels[clusterv1.MachineControlPlaneLabel]; ok {
		return models.HostRoleMaster
	}
	return models.HostRoleWorker
}

// Installation is what assisted-service says of the cluster.
func (f *Facts) Installation() assisted.Installation { return assisted.Observe(f.Install) }

// ClusterDeleting tells whether the whole cluster goes, so that nothing needs to be cleaned up inside it.
func (f *Facts) ClusterDeleting() bool {
	return f.Cluster == nil || !f.Cluster.DeletionTimestamp.IsZero()
}

// NotAccepted says why the cluster does not take the host now; it is empty when it does. Before the installation the cluster takes only workers
// that it counts, and a single node is installed alone: assisted-service never starts with one known host more than it was told of.
func (f *Facts) NotAccepted() string {
	installation := f.Installation()
	switch {
	case !installation.AcceptsHosts:
		return fmt.Sprintf("the cluster does not accept hosts in state %q", installation.State)
	case !installation.DayTwo && f.Role() == models.HostRoleWorker && f.Install.Spec.ProvisionRequirements.WorkerAgents == 0:
		return "the cluster is installed without workers"
	}
	return ""
}

// RegisteredAnew tells whether assisted-service takes a cluster that has been installed for one that may still be: a host that is bound to it would be installed
// into a cluster that does not exist.
func (f *Facts) RegisteredAnew() bool {
	installation := f.Installation()
	return installation.Registered && !installation.Started && (f.ControlPlaneRuns || f.Deployment != nil && f.Deployment.Spec.Installed)
}
