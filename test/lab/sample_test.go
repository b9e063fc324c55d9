package lab

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/payload"
)

func TestRename(t *testing.T) {
	for situation, c := range map[string]struct{ before, after string }{
		"the name itself":                          {"ha", "rack"},
		"a name that begins with it":               {"ha-worker", "rack-worker"},
		"a word that only begins with its letters": {"harvest", "harvest"},
		"a name that ends with it":                 {"not-ha", "not-ha"},
		"a name that contains it":                  {"api.ha.lab.example.com", "api.ha.lab.example.com"},
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
		"a control plane of three":         {map[string]any{"kind": controlPlaneKind, "spec": map[string]any{"replicas": int64(3)}}, 3},
		"a control plane without replicas": {map[string]any{"kind": controlPlaneKind}, 1},
		"workers that are scaled to zero": {map[string]any{
			"kind": machineDeploymentKind,
			"spec": map[string]any{"replicas": int64(0)},
		}, 0},
		"a cluster without topology":                {map[string]any{"kind": clusterKind, "spec": map[string]any{}}, 0},
		"a topology: three, two, and one":           {map[string]any{"kind": clusterKind, "spec": map[string]any{"topology": topology}}, 6},
		"an object with replicas but without hosts": {map[string]any{"kind": "Deployment", "spec": map[string]any{"replicas": int64(2)}}, 0},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(machinesOf(&unstructured.Unstructured{Object: c.object})).To(Equal(c.wanted))
		})
	}
}

func TestSamplesNeedTheDocumentedHosts(t *testing.T) {
	dir, err := samplesDir()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	l := &Lab{samples: dir}
	for sample, wanted := range map[string]int{
		"ha": 5, "compact": 3, "sno": 1, "ha-disk-image": 5, "okd": 5, "clusterclass": 5, "arbiter": 3, "two-node": 2,
		"argocd": 1, "arm64": 3, "disconnected": 3, "dual-stack": 3, "health-checks": 5, "mixed-architectures": 4, "proxy": 3,
		"static-network": 3, "third-party-cni": 3, "user-load-balancer": 3,
	} {
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

func TestHostsHaveTheNeedsOfSamples(t *testing.T) {
	dir, err := samplesDir()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	l := &Lab{samples: dir}
	documentation := []string{"192.0.2.0/24"}
	for sample, wanted := range map[string]need{
		"ha":                  {networks: []string{"192.168.111.0/24"}},
		"clusterclass":        {networks: []string{"192.168.111.0/24"}},
		"dual-stack":          {networks: []string{"192.0.2.0/24", "2001:db8::/64"}},
		"arm64":               {networks: documentation, architecture: "aarch64", labels: map[string]string{"example.com/architecture": "arm64"}},
		"mixed-architectures": {networks: documentation, architecture: "aarch64", labels: map[string]string{"example.com/architecture": "arm64"}},
		"static-network":      {networks: documentation, static: true, mac: "52:54:00:00:01:03"},
	} {
		t.Run(sample, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := l.readSample(sample)
			g.Expect(err).NotTo(HaveOccurred())
			needs := manifests(objects).needs()
			g.Expect(needs[len(needs)-1]).To(Equal(wanted), "the last need")
		})
	}
}

func TestRegistryHasPublishedImages(t *testing.T) {
	g := NewWithT(t)
	registry, err := startRegistry(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	for _, version := range []string{"4.19.3", "4.19.0-okd-scos.5"} {
		image, err := registry.Publish(version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(registry.Version(image)).To(Equal(version))
	}
	g.Expect(registry.Version("elsewhere@sha256:0")).To(BeEmpty())
	g.Expect(registry.Lookups()).To(BeEmpty(), "publishing is not counted")
}

func TestLookupsSince(t *testing.T) {
	g := NewWithT(t)
	registry, err := startRegistry(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	lookUp := func(version string) string {
		published, err := registry.Publish(version)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := name.ParseReference(published)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = remote.Image(ref)
		g.Expect(err).NotTo(HaveOccurred())
		return ref.Identifier()
	}
	former := lookUp("4.19.3")
	begin := time.Now()
	later := lookUp("4.19.4")
	g.Expect(registry.Lookups()).To(ContainElements(HaveSuffix(former), HaveSuffix(later)))
	g.Expect(registry.LookupsSince(begin)).To(HaveEach(HaveSuffix(later)))
}

// Managers read the version of Kubernetes in the newest layer of a release image.
func TestReleaseImagesStateTheirKubernetesVersion(t *testing.T) {
	g := NewWithT(t)
	registry, err := startRegistry(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	for version, want := range map[string]string{"4.16.2": "kubernetes=1.29.6", "4.22.15": "kubernetes=1.35.6", "4.99.0": ""} {
		published, err := registry.Publish(version)
		g.Expect(err).NotTo(HaveOccurred())
		ref, err := name.ParseReference(published)
		g.Expect(err).NotTo(HaveOccurred())
		image, err := remote.Image(ref)
		g.Expect(err).NotTo(HaveOccurred())
		layers, err := image.Layers()
		g.Expect(err).NotTo(HaveOccurred())
		newest, err := layers[len(layers)-1].Uncompressed()
		g.Expect(err).NotTo(HaveOccurred())
		content, err := io.ReadAll(newest)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(content)).To(And(ContainSubstring(payload.References), ContainSubstring(want)))
		g.Expect(strings.Contains(string(content), "kubernetes=")).To(Equal(want != ""), "no version for an unknown release")
	}
}

// The middleware does not apply to the lab's own requests.
func TestForeignRequestsPassMiddlewareOfRegistry(t *testing.T) {
	g := NewWithT(t)
	passed := 0
	registry, err := startRegistry(t.Context(), func(images http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			passed++
			images.ServeHTTP(w, r)
		})
	})
	g.Expect(err).NotTo(HaveOccurred())
	controlPlane := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"distributionVersion": "4.19.3"}}}
	controlPlane.SetNamespace("apart")
	g.Expect(registry.publishSeparately(controlPlane)).To(Succeed())
	g.Expect(passed).To(BeZero())

	image := controlPlane.GetAnnotations()[controlplanev1.ReleaseImageRepositoryOverrideAnnotation] + ":4.19.3-x86_64"
	g.Expect(image).To(HavePrefix(registry.address + "/apart/"))
	ref, err := name.ParseReference(image)
	g.Expect(err).NotTo(HaveOccurred())
	found, err := remote.Head(ref)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(passed).To(Equal(2), "a ping, and the request for the image")
	g.Expect(registry.Version(ref.Context().Digest(found.Digest.String()).Name())).To(Equal("4.19.3"))
}

func TestHostsHaveTheLabelsThatMachinesSelect(t *testing.T) {
	dir, err := samplesDir()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	l := &Lab{samples: dir}
	small, large := map[string]string{"example.com/size": "small"}, map[string]string{"example.com/size": "large"}
	for sample, wanted := range map[string][]map[string]string{"arbiter": {small, large, large}, "ha": {nil, nil, nil, nil, nil}} {
		t.Run(sample, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := l.readSample(sample)
			g.Expect(err).NotTo(HaveOccurred())
			var labels []map[string]string
			for _, n := range manifests(objects).needs() {
				labels = append(labels, n.labels)
			}
			g.Expect(labels).To(Equal(wanted))
		})
	}
}
