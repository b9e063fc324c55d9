package workers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineSet is the desired state of the Machines of a MachineSet, or of its MachineDeployment, because a
// superseded set keeps its former version.
type MachineSet struct {
	// Version is the desired version of the Machines; "" if none is set.
	Version string
	// RollsOut is true if Cluster API brings the Machines to it, in place or by replacing them.
	RollsOut bool
	// TopologyName is the name of their MachineDeployment in the topology of the Cluster; "" outside of a topology.
	TopologyName string
}

// MachineSets returns the desired state of MachineSets, by the UID of the set.
func MachineSets(deployments []clusterv1.MachineDeployment, sets []clusterv1.MachineSet) map[types.UID]MachineSet {
	of := map[types.UID]MachineSet{}
	for i := range deployments {
		spec := &deployments[i].Spec
		of[deployments[i].UID] = MachineSet{
			Version: spec.Template.Spec.Version, RollsOut: spec.Rollout.Strategy.Type != clusterv1.OnDeleteMachineDeploymentStrategyType,
			TopologyName: deployments[i].Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel],
		}
	}
	found := map[types.UID]MachineSet{}
	for i := range sets {
		found[sets[i].UID] = MachineSet{Version: sets[i].Spec.Template.Spec.Version}
		if owner := metav1.GetControllerOf(&sets[i]); owner != nil && OwnedByKind(&sets[i], "MachineDeployment") {
			found[sets[i].UID] = of[owner.UID]
			if _, known := of[owner.UID]; !known { // its MachineDeployment is not in the cache yet
				delete(found, sets[i].UID)
			}
		}
	}
	return found
}
