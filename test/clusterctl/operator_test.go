package clusterctl

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// The API server accepts the release's manifests for the Cluster API operator, by the CRDs of the operator. The
// operator finds the components in them that clusterctl would install. The operator itself does not run.
func TestManifestsForOperatorAreAccepted(t *testing.T) {
	g := NewWithT(t)
	builder, err := components.NewBuilder(".", io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	l, err := lab.New(t.Context(),
		lab.Options{Dir: filepath.Join(builder.Root(), "_artifacts", "operator"), NoManagers: true, LeaveSignals: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(l.Stop)
	w := &world{T: t, builder: builder, lab: l, gitHub: startGitHub(t), images: map[string]env.Image{}}
	w.publish(builder, first)
	module, err := builder.ModuleDir(t.Context(), filepath.Join("test", "tools", "capi-operator"), "sigs.k8s.io/cluster-api-operator")
	g.Expect(err).NotTo(HaveOccurred())
	for kind, provider := range map[string]struct{ crd, namespace, label, components string }{
		"BootstrapProvider": {
			"bootstrapproviders", "openshift-agent-bootstrap-system", "bootstrap-openshift-agent",
			"bootstrap-components.yaml",
		},
		"ControlPlaneProvider": {
			"controlplaneproviders", "openshift-agent-control-plane-system", controlPlaneLabel,
			"control-plane-components.yaml",
		},
	} {
		w.applyAll(filepath.Join(module, "config", "crd", "bases", "operator.cluster.x-k8s.io_"+provider.crd+".yaml"), "")
		release := w.gitHub.release(repository, first)
		g.Eventually(func(g Gomega) { // until the API server serves the kind
			applied := &unstructured.Unstructured{}
			applied.SetAPIVersion("operator.cluster.x-k8s.io/v1alpha2")
			applied.SetKind(kind)
			w.apply(g, filepath.Join(release, provider.label+"-cluster-api-operator.yaml"), "")
			g.Expect(l.Client().Get(t.Context(), client.ObjectKey{Namespace: provider.namespace, Name: "openshift-agent"}, applied)).To(Succeed())
			version, _, _ := unstructured.NestedString(applied.Object, "spec", "version")
			g.Expect(version).To(Equal(first))
			labels, _, _ := unstructured.NestedStringMap(applied.Object, "spec", "fetchConfig", "selector", "matchLabels")
			g.Expect(labels).NotTo(BeEmpty())
			sources := &corev1.ConfigMapList{}
			g.Expect(l.Client().List(t.Context(), sources, client.InNamespace(provider.namespace), client.MatchingLabels(labels))).To(Succeed())
			g.Expect(sources.Items).To(HaveLen(1))
			g.Expect(sources.Items[0].Name).To(Equal(first), "the operator uses the name as the version")
			for key, file := range map[string]string{"components": provider.components, "metadata": "metadata.yaml"} {
				content, err := os.ReadFile(filepath.Join(release, file))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(sources.Items[0].Data).To(HaveKeyWithValue(key, string(content)))
			}
		}).WithTimeout(soon).Should(Succeed())
	}
}
