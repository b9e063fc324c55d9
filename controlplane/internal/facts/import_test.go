package facts

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// given returns a Machine that has its bootstrap data.
func given(name string, change func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.Bootstrap.DataSecretName = ptr.To(name)
	if change != nil {
		change(m)
	}
	return m
}

func TestWaitsForNode(t *testing.T) {
	for situation, tc := range map[string]struct {
		machine *clusterv1.Machine
		waits   bool
	}{
		"it has bootstrap data": {given("m", nil), true},
		"it is new":             {&clusterv1.Machine{}, false},
		"its Node is known":     {given("m", func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }), false},
		"Metal3 gave it a providerID after its Node": {given("m", func(m *clusterv1.Machine) {
			m.Spec.ProviderID, m.Spec.InfrastructureRef.Kind = "metal3://x", metal3.MachineKind
		}), false},
		"another provider set the providerID, possibly before the Node existed": {
			given("m", func(m *clusterv1.Machine) { m.Spec.ProviderID = "metalstack://x" }), true,
		},
	} {
		t.Run(situation, func(t *testing.T) { NewWithT(t).Expect(WaitsForNode(tc.machine)).To(Equal(tc.waits)) })
	}
}
