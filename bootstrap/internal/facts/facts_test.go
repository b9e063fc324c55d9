package facts

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

func TestHandedOut(t *testing.T) {
	machine := func(secret *string) *clusterv1.Machine {
		return &clusterv1.Machine{Spec: clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: secret}}}
	}
	for situation, tc := range map[string]struct {
		recorded string
		machine  *clusterv1.Machine
		wanted   string
	}{
		"nothing was handed out":                    {"", machine(nil), ""},
		"a Machine with an empty name":              {"", machine(ptr.To("")), ""},
		"recorded, and not yet in the Machine":      {"m", machine(nil), "m"},
		"the Machine is deleted":                    {"m", nil, "m"},
		"the record is lost, the Machine was moved": {"", machine(ptr.To("m")), "m"},
		"neither a record nor a Machine":            {"", nil, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			f := &Facts{Config: &bootstrapv1.OpenshiftAssistedConfig{}, Machine: tc.machine}
			f.Config.Status.DataSecretName = tc.recorded
			g := NewWithT(t)
			g.Expect(f.HandedOut()).To(Equal(tc.wanted))
			g.Expect(f.DataHandedOut()).To(Equal(tc.wanted != ""), "data is handed out")
		})
	}
}
