// Package workers compares the workers that the MachineDeployments, MachineSets and the topology of a Cluster request with the Machines
// that exist. It has no client.
package workers

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// ConfigKind is the kind of the bootstrap configs of our bootstrap provider.
	ConfigKind = "OpenshiftAssistedConfig"
	// ConfigTemplateKind is the kind of their templates.
	ConfigTemplateKind = "OpenshiftAssistedConfigTemplate"
)

// Count returns the number of workers with hosts of our bootstrap provider that the objects of a
// Cluster request. It counts the replicas of MachineDeployments and of MachineSets without owner, and
// Machines without owner. MachineDeployments that the topology has not created yet count as well.
func Count(
	cluster *clusterv1.Cluster, deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet, machines []*clusterv1.Machine,
) int32 {
	count := countPlanned(cluster, deployments)
	for i := range deployments {
		d := &deployments[i]
		if d.DeletionTimestamp.IsZero() && d.Spec.Template.Spec.Bootstrap.ConfigRef.Kind == ConfigTemplateKind {
			count += ptr.Deref(d.Spec.Replicas, 1)
		}
	}
	for i := range sets {
		set := &sets[i]
		if set.DeletionTimestamp.IsZero() && !OwnedByKind(set, "MachineDeployment") &&
			set.Spec.Template.Spec.Bootstrap.ConfigRef.Kind == ConfigTemplateKind {
			count += ptr.Deref(set.Spec.Replicas, 1)
		}
	}
	for _, m := range machines {
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		if m.DeletionTimestamp.IsZero() && !controlPlane && !OwnedByKind(m, "MachineSet") && m.Spec.Bootstrap.ConfigRef.Kind == ConfigKind {
			count++
		}
	}
	return count
}

// countPlanned returns the number of workers of a topology whose MachineDeployments do not exist yet. Cluster
// API creates them a moment after the control plane, and the installation must include them. The kind of
// their Machines is unknown; they count as ours until they exist.
func countPlanned(cluster *clusterv1.Cluster, deployments []clusterv1.MachineDeployment) int32 {
	if cluster == nil {
		return 0
	}
	var count int32
	for _, planned := range cluster.Spec.Topology.Workers.MachineDeployments {
		created := slices.ContainsFunc(deployments, func(d clusterv1.MachineDeployment) bool {
			return d.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] == planned.Name
		})
		if !created {
			count += ptr.Deref(planned.Replicas, 1)
		}
	}
	return count
}

// OwnedByKind reports whether an object has an owner of a kind.
func OwnedByKind(obj metav1.Object, kind string) bool {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == kind {
			return true
		}
	}
	return false
}
