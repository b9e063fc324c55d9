package lab

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestRename(t *testing.T) {
	for situation, c := range map[string]struct{ before, after string }{
		"the name itself":                          {"ha", "rack"},
		"a name that begins with it":               {"ha-worker", "rack-worker"},
		"a word that only begins with its letters": {"harvest", "harvest"},
		"a name that ends with it":                 {"not-ha", "not-ha"},
		"something in between":                     {"api.ha.lab.example.com", "api.ha.lab.example.com"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			before := map[string]any{"list": []any{map[string]any{"name": c.before}}, "number": int64(3)}
			after := map[string]any{"list": []any{map[string]any{"name": c.after}}, "number": int64(3)}
			g.Expect(rename(before, "ha", "rack")).To(Equal(after))
		})
	}
}

func TestMachinesOf(t *testing.T) {
	topology := map[string]any{
		"classRef":     map[string]any{"name": "agent"},
		"controlPlane": map[string]any{"replicas": int64(3)},
		"workers":      map[string]any{"machineDeployments": []any{map[string]any{"replicas": int64(2)}, map[string]any{}}},
	}
	for situation, c := range map[string]struct {
		object map[string]any
		wanted int
	}{
		"a control plane of three":                  {map[string]any{"kind": controlPlaneKind, "spec": map[string]any{"replicas": int64(3)}}, 3},
		"a control plane that does not say":         {map[string]any{"kind": controlPlaneKind}, 1},
		"workers that are scaled to none":           {map[string]any{"kind": machineDeploymentKind, "spec": map[string]any{"replicas": int64(0)}}, 0},
		"a cluster whose parts stand beside it":     {map[string]any{"kind": clusterKind, "spec": map[string]any{}}, 0},
		"a topology: three, two, and one":           {map[string]any{"kind": clusterKind, "spec": map[string]any{"topology": topology}}, 6},
		"something that has replicas, but no hosts": {map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": int64(2)}}, 0},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(machinesOf(&unstructured.Unstructured{Object: c.object})).To(Equal(c.wanted))
		})
	}
}

func TestSamplesNeedAsManyHostsAsTheySay(t *testing.T) {
	dir, err := samplesDir()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	l := &Lab{samples: dir}
	for sample, wanted := range map[string]int{"ha": 5, "compact": 3, "sno": 1, "ha-disk-image": 5, "okd": 5, "clusterclass": 5} {
		t.Run(sample, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := l.readSample(sample)
			g.Expect(err).NotTo(HaveOccurred())
			machines := 0
			for _, object := range objects {
				machines += machinesOf(object)
			}
			g.Expect(machines).To(Equal(wanted))
		})
	}
}

func TestRegistryHasWhatWasPublished(t *testing.T) {
	g := NewWithT(t)
	registry, err := startRegistry(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	for _, version := range []string{"4.19.3", "4.19.0-okd-scos.5"} {
		image, err := registry.Publish(version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(registry.Version(image)).To(Equal(version))
	}
	g.Expect(registry.Version("elsewhere@sha256:0")).To(BeEmpty())
	g.Expect(registry.Lookups()).To(BeEmpty(), "publishing is no look-up")
}
