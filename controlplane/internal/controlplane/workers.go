package controlplane

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	configKind         = "OpenshiftAssistedConfig"
	configTemplateKind = "OpenshiftAssistedConfigTemplate"
)

// countWorkers is the number of workers that the objects of a Cluster ask for and that our bootstrap provider makes hosts of: those of its
// MachineDeployments, of MachineSets that stand alone, and Machines that stand alone.
func countWorkers(deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet, machines []*clusterv1.Machine) int32 {
	var count int32
	for i := range deployments {
		d := &deployments[i]
		if d.DeletionTimestamp.IsZero() && d.Spec.Template.Spec.Bootstrap.ConfigRef.Kind == configTemplateKind {
			count += ptr.Deref(d.Spec.Replicas, 1)
		}
	}
	for i := range sets {
		set := &sets[i]
		if set.DeletionTimestamp.IsZero() && !ownedByKind(set, "MachineDeployment") && set.Spec.Template.Spec.Bootstrap.ConfigRef.Kind == configTemplateKind {
			count += ptr.Deref(set.Spec.Replicas, 1)
		}
	}
	for _, m := range machines {
		_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
		if m.DeletionTimestamp.IsZero() && !controlPlane && !ownedByKind(m, "MachineSet") && m.Spec.Bootstrap.ConfigRef.Kind == configKind {
			count++
		}
	}
	return count
}
