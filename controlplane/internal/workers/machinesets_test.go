package workers

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A superseded MachineSet keeps its former version. The version of a MachineDeployment that the cache does not show is
// unknown, and not omitted.
func TestMachineSetsHaveTheVersionOfTheirMachineDeployment(t *testing.T) {
	set := func(uid types.UID, owner, version string) clusterv1.MachineSet {
		s := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{UID: uid}}
		if owner != "" {
			s.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineDeployment", UID: types.UID(owner), Controller: ptr.To(true)}}
		}
		s.Spec.Template.Spec.Version = version
		return s
	}
	deployment := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		UID: "deployment", Labels: map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "worker"},
	}}
	deployment.Spec.Template.Spec.Version = "v1.33.5"
	NewWithT(t).Expect(MachineSets([]clusterv1.MachineDeployment{deployment}, []clusterv1.MachineSet{
		set("former", "deployment", "v1.32.7"), set("alone", "", "v1.32.7"), set("uncached", "unknown", ""),
	})).To(Equal(map[types.UID]MachineSet{
		"former": {Version: "v1.33.5", RollsOut: true, TopologyName: "worker"}, "alone": {Version: "v1.32.7"},
	}))
}
