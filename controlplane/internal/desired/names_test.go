package desired

import (
	"strings"
	"testing"
	"text/template"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestMachineNames(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	three, err := FreeSlots(s, 3)
	g.Expect(err).NotTo(HaveOccurred())
	again, err := FreeSlots(s, 3)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(three), "a stale cache gives the same names")
	for _, slot := range three {
		g.Expect(slot.Name).To(MatchRegexp(`^c1-[a-z0-9]{5}$`))
	}
	s.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: three[1].Name}}}
	two, err := FreeSlots(s, 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(two).To(Equal([]Slot{three[0], three[2]}), "a cache with one of three Machines")

	long := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Name = strings.Repeat("x", 100) })
	slots, err := FreeSlots(long, 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(slots[0].Name).To(HaveLen(63))
}

func TestMachineNamingTemplate(t *testing.T) {
	for template, wanted := range map[string]string{
		"{{ .cluster.name }}-cp-{{ .random }}":          `^cluster1-cp-[a-z0-9]{5}$`,
		"{{ .kubeadmControlPlane.name }}-{{ .random }}": `^c1-[a-z0-9]{5}$`,
		"{{- .controlPlane.name -}}\t{{- .random -}} ":  `^c1[a-z0-9]{5}$`,
		"a \n{{- .random}}":                             `^a[a-z0-9]{5}$`,
		"{{ .random -}} a":                              `^[a-z0-9]{5}a$`,
		"{{ .random }} a":                               "",
		"{{-.random }}":                                 "",
		"{{ .random-}}":                                 "",
		"{{ .nothing.name }}-{{ .random }}":             "",
		"UPPER-{{ .random }}":                           "",
		"{{/* {{ .random }} */}}x":                      "",
		"x":                                             "",
		"{{ range 9999 }}{{ end }}{{ .random }}":        "",
		strings.Repeat("x", 60) + "-{{ .random }}":      "",
	} {
		g := NewWithT(t)
		s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.MachineNaming.Template = template })
		expectLikeGoTemplate(g, template)
		slots, err := FreeSlots(s, 1)
		if wanted == "" {
			g.Expect(err).To(HaveOccurred(), template)
			continue
		}
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(slots[0].Name).To(MatchRegexp(wanted))
	}
}

// expectLikeGoTemplate expects that an accepted naming template gives the same text as a Go template.
func expectLikeGoTemplate(g Gomega, naming string) {
	if !namingTemplate.MatchString(naming) {
		return
	}
	parsed, err := template.New("").Parse(naming)
	g.Expect(err).NotTo(HaveOccurred())
	var wanted strings.Builder
	g.Expect(parsed.Execute(&wanted, map[string]any{
		"cluster": map[string]string{"name": "a"}, "controlPlane": map[string]string{"name": "b"},
		"kubeadmControlPlane": map[string]string{"name": "c"}, "random": "d",
	})).To(Succeed())
	g.Expect(expandName(naming, map[string]string{
		".cluster.name": "a", ".controlPlane.name": "b", ".kubeadmControlPlane.name": "c", ".random": "d",
	})).To(Equal(wanted.String()), naming)
}
