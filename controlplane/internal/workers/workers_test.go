package workers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestCountWorkers(t *testing.T) {
	template := func(kind string) clusterv1.MachineTemplateSpec {
		return clusterv1.MachineTemplateSpec{
			Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: kind}}},
		}
	}
	deployment := func(replicas *int32, kind string, change func(*clusterv1.MachineDeployment)) clusterv1.MachineDeployment {
		d := clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: replicas, Template: template(kind)}}
		if change != nil {
			change(&d)
		}
		return d
	}
	set := clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Replicas: ptr.To[int32](4), Template: template(ConfigTemplateKind)}}
	ownedSet := *set.DeepCopy()
	ownedSet.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment"}}
	machine := &clusterv1.Machine{Spec: template(ConfigKind).Spec}
	ownedMachine := machine.DeepCopy()
	ownedMachine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet"}}
	stray := machine.DeepCopy()
	stray.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	topology := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{Workers: clusterv1.WorkersTopology{
		MachineDeployments: []clusterv1.MachineDeploymentTopology{
			{Name: "a", Replicas: ptr.To[int32](2)}, {Name: "b", Replicas: ptr.To[int32](3)},
		},
	}}}}
	ofTopology := func(d *clusterv1.MachineDeployment) {
		d.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "b"}
	}
	for situation, tc := range map[string]struct {
		cluster     *clusterv1.Cluster
		deployments []clusterv1.MachineDeployment
		sets        []clusterv1.MachineSet
		machines    []*clusterv1.Machine
		count       int32
	}{
		"none": {},
		"MachineDeployments add up": {deployments: []clusterv1.MachineDeployment{
			deployment(ptr.To[int32](2), ConfigTemplateKind, nil), deployment(ptr.To[int32](3), ConfigTemplateKind, nil),
		}, count: 5},
		"no replicas means one": {deployments: []clusterv1.MachineDeployment{deployment(nil, ConfigTemplateKind, nil)}, count: 1},
		"a topology that has created one of its MachineDeployments": {
			cluster: topology, deployments: []clusterv1.MachineDeployment{deployment(ptr.To[int32](3), ConfigTemplateKind, ofTopology)}, count: 5,
		},
		"another bootstrap provider": {deployments: []clusterv1.MachineDeployment{deployment(ptr.To[int32](2), "KubeadmConfigTemplate", nil)}},
		"a MachineDeployment that is being deleted": {
			deployments: []clusterv1.MachineDeployment{
				deployment(ptr.To[int32](2), ConfigTemplateKind, func(d *clusterv1.MachineDeployment) { d.DeletionTimestamp = ptr.To(metav1.Now()) }),
			},
		},
		"a MachineSet without owner, and one of a MachineDeployment": {sets: []clusterv1.MachineSet{set, ownedSet}, count: 4},
		"a Machine without owner, one of a MachineSet, and one of a control plane": {
			machines: []*clusterv1.Machine{machine, ownedMachine, stray}, count: 1,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(Count(tc.cluster, tc.deployments, tc.sets, tc.machines)).To(Equal(tc.count))
		})
	}
}
