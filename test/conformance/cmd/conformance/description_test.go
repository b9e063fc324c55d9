package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/conformance"
)

const valid = `bootstrap: {name: one, release: release, kind: {group: bootstrap.example.com, version: v1, kind: OneConfig}}
controlPlane: {name: one, release: release, kind: {group: controlplane.example.com, version: v1, kind: OneControlPlane}}
installed: Available
samples: {small: small.yaml}
exempt: {B5: the reason}
`

const sample = `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: "c-${NAMESPACE}"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}
`

// describe writes a description and a complete release to a folder.
func describe(t *testing.T, description string) string {
	t.Helper()
	g, dir := NewWithT(t), t.TempDir()
	for file, content := range map[string]string{
		"providers.yaml":                            description,
		"small.yaml":                                sample,
		"release/metadata.yaml":                     "kind: Metadata\n",
		"release/bootstrap-components.yaml":         "kind: Namespace\n",
		"release/control-plane-components.yaml":     "kind: Namespace\n",
		"release/cluster-template-development.yaml": "kind: Cluster\n",
		"release/readme.yaml":                       "kind: None\n",
	} {
		g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600)).To(Succeed())
	}
	return filepath.Join(dir, "providers.yaml")
}

func TestInvalidDescriptionsAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ old, new, wanted string }{
		"unknown field":           {"exempt:", "exemptions:", "unknown field"},
		"kind without version":    {"version: v1, kind: OneConfig", "kind: OneConfig", "the bootstrap provider needs name"},
		"release without files":   {"release: release", "release: none", "the release of the bootstrap provider is incomplete"},
		"unknown sample":          {"small:", "tiny:", "unknown sample tiny: use some of [small full topology]"},
		"samples without the end": {"installed: Available", "installed: \"\"", "installed is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readDescription(describe(t, strings.Replace(valid, test.old, test.new, 1)))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(test.wanted)))
		})
	}
	_, err := readDescription("")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("-provider is missing")))
}

func TestDescriptionNamesProviders(t *testing.T) {
	g := NewWithT(t)
	d, err := readDescription(describe(t, valid))
	g.Expect(err).NotTo(HaveOccurred())
	p, err := d.provider()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Bootstrap.Template.Kind).To(Equal("OneConfigTemplate"))
	g.Expect(p.Samples).To(ConsistOf(conformance.Small))
	g.Expect(p.Exempt).To(And(HaveKeyWithValue("B5", "the reason"), HaveKey("C18")))
	g.Expect(p.Templates).To(And(HaveLen(1), HaveKey("cluster-template-development.yaml")))
	dir := t.TempDir()
	g.Expect(p.Release(t.Context(), "v0.3.0", dir)).To(Succeed())
	g.Expect(filepath.Join(dir, "control-plane-one", "v0.3.0", "metadata.yaml")).To(BeARegularFile())
}

func TestHubIsGivenOrStarted(t *testing.T) {
	for _, flags := range [][2]string{{"", ""}, {"kubeconfig", "core.yaml"}} {
		_, err := newHub(&description{}, flags[0], flags[1])
		NewWithT(t).Expect(err).To(MatchError("use one of the flags -kubeconfig and -core"))
	}
}

func TestSamplesAreAppliedToNamespaces(t *testing.T) {
	g := NewWithT(t)
	d, err := readDescription(describe(t, valid))
	g.Expect(err).NotTo(HaveOccurred())
	h := &hub{description: d, client: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()}
	key := types.NamespacedName{Namespace: "small", Name: "later"}
	applied, err := h.Apply(t.Context(), conformance.ClusterOptions{
		Sample: conformance.Small, Namespace: "small",
		Without: func(o *unstructured.Unstructured) bool { return o.GetName() == key.Name },
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(applied.Key()).To(Equal(types.NamespacedName{Namespace: "small", Name: "c-small"}))
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	g.Expect(h.client.Get(t.Context(), key, object)).To(Satisfy(apierrors.IsNotFound))
	g.Expect(applied.ApplyRest(t.Context())).To(Succeed())
	g.Expect(h.client.Get(t.Context(), key, object)).To(Succeed())
}

// After a change, the conditions of the Cluster may be those before, while a new Machine is not ready yet.
func TestClusterIsAvailableWithAllItsMachines(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	condition := func(name string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, Reason: "Tested"}
	}
	existing := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "one"}}
	existing.Status.Conditions = []metav1.Condition{
		condition(clusterv1.ClusterAvailableCondition, metav1.ConditionTrue),
		condition(clusterv1.ClusterScalingUpCondition, metav1.ConditionFalse),
		condition(clusterv1.ClusterRollingOutCondition, metav1.ConditionFalse),
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "new"}}
	machine.Spec.ClusterName = "one"
	missing := func() error {
		c := &cluster{hub: &hub{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing, machine).Build()}}
		c.key = types.NamespacedName{Namespace: "lab", Name: "one"}
		return c.missing(t.Context())
	}
	g.Expect(missing()).To(MatchError("condition Remediating does not exist"))
	existing.Status.Conditions = append(existing.Status.Conditions, condition(clusterv1.ClusterRemediatingCondition, metav1.ConditionFalse))
	g.Expect(missing()).To(MatchError("machine new: condition Ready does not exist"))
	machine.Status.Conditions = []metav1.Condition{condition(clusterv1.MachineReadyCondition, metav1.ConditionFalse)}
	g.Expect(missing()).To(MatchError("machine new: condition Ready is False: Tested: "))
	machine.Status.Conditions[0].Status = metav1.ConditionTrue
	g.Expect(missing()).To(Succeed())
}
