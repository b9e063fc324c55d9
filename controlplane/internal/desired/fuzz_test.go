package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// For any template each slot has a unique, valid and stable name, or an error. The computation always ends. An accepted
// template gives the same text as a Go template.
func FuzzMachineNaming(f *testing.F) {
	for _, template := range []string{
		"", "{{ .cluster.name }}-cp-{{ .random }}", "{{- .kubeadmControlPlane.name -}}-{{ .random }}", "x{{ .random }}{{ .random }}",
		"{{/* {{ .random }} */}}x",
		"{{ if .nothing }}{{ .random }}{{ end }}x",
		"{{ range 100000000000 }}{{ end }}{{ .random }}",
		`{{ .random }}{{ printf "%1000000d" 1 }}`,
		"{{",
		"{{ .cluster }}-{{ .random }}",
	} {
		f.Add("c1", template)
	}
	f.Fuzz(func(t *testing.T, name, template string) {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return // not the name of an object
		}
		g := NewWithT(t)
		expectLikeGoTemplate(g, template)
		s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
			cp.Name, cp.Spec.MachineNaming.Template = name, template
		})
		slots, err := FreeSlots(s, 3)
		if err != nil {
			return
		}
		names := map[string]bool{}
		for _, slot := range slots {
			g.Expect(validation.IsDNS1123Subdomain(slot.Name)).To(BeEmpty(), slot.Name)
			g.Expect(len(slot.Name)).To(BeNumerically("<=", maxMachineName))
			names[slot.Name] = true
			machine := &clusterv1.Machine{}
			machine.Name = slot.Name
			s.Machines = append(s.Machines, machine)
		}
		g.Expect(names).To(HaveLen(3), "%v", slots)
		further, err := FreeSlots(s, 1)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(names).NotTo(HaveKey(further[0].Name))
	})
}
