package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestVersionsDuringUpgrade(t *testing.T) {
	version := func(release string, replicas int32) controlplanev1.StatusVersion {
		return controlplanev1.StatusVersion{Version: release, Replicas: ptr.To(replicas)}
	}
	for situation, c := range map[string]struct {
		to       string
		machines []string
		wanted   []controlplanev1.StatusVersion
	}{
		"no Machine has it yet": {
			to: "4.19.9", machines: []string{"v4.19.3", "v4.19.3"}, wanted: []controlplanev1.StatusVersion{version("v4.19.3", 2)},
		},
		"one has it": {
			to:       "4.19.9",
			machines: []string{"v4.19.9", "v4.19.3"},
			wanted:   []controlplanev1.StatusVersion{version("v4.19.3", 1), version("v4.19.9", 1)},
		},
		"all have it, the cluster has not finished": {
			to:       "4.19.9",
			machines: []string{"v4.19.9", "v4.19.9"},
			wanted:   []controlplanev1.StatusVersion{version("v4.19.3", 0), version("v4.19.9", 2)},
		},
		"reverted": {
			to:       "4.19.1",
			machines: []string{"v4.19.1", "v4.19.1"},
			wanted:   []controlplanev1.StatusVersion{version("v4.19.1", 2), version("v4.19.3", 0)},
		},
		"no Machines": {to: "4.19.9", wanted: []controlplanev1.StatusVersion{version("v4.19.3", 0)}},
	} {
		t.Run(situation, func(t *testing.T) {
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.DistributionVersion = "v4.19.9" })
			f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.19.3", Upgrading: c.to}
			v := viewOf(f)
			for _, version := range c.machines {
				v.Found.Machines = append(v.Found.Machines, &clusterv1.Machine{
					ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: clusterv1.MachineSpec{Version: version},
				})
			}
			status := controlplanev1.OpenshiftAssistedControlPlaneStatus{}
			v.composeNumbers(&status)
			g := NewWithT(t)
			g.Expect(status.Versions).To(Equal(c.wanted))
			g.Expect(status.Version).To(Equal(c.wanted[0].Version), "the lowest")
		})
	}
}
