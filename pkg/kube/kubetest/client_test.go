package kubetest

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestApplyChangesTheResourceVersion: a test that compares resource versions sees each write, and no write that changes
// nothing.
func TestApplyChangesTheResourceVersion(t *testing.T) {
	g := NewWithT(t)
	c := BuildClient(fake.NewClientBuilder().WithReturnManagedFields(), clientgoscheme.Scheme, interceptor.Funcs{})
	apply := func(owner, value string) string {
		g.THelper()
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "lab", "name": "c"},
			"data": map[string]any{"key": value},
		}}
		g.Expect(c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(obj), client.FieldOwner(owner))).To(Succeed())
		stored := &corev1.ConfigMap{}
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "c"}, stored)).To(Succeed())
		g.Expect(stored.Data).To(HaveKeyWithValue("key", value))
		g.Expect(obj.GetResourceVersion()).To(Equal(stored.ResourceVersion), "the answer is what is stored")
		return stored.ResourceVersion
	}
	created := apply("one", "a")
	g.Expect(created).NotTo(BeEmpty())
	g.Expect(apply("one", "a")).To(Equal(created), "nothing changed")
	changed := apply("one", "b")
	g.Expect(changed).NotTo(Equal(created), "another value")
	owned := apply("two", "b")
	g.Expect(owned).NotTo(Equal(changed), "a second owner")
	g.Expect(apply("two", "b")).To(Equal(owned), "nothing changed")

	stale := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "lab", "name": "c", "resourceVersion": changed},
	}}
	g.Expect(c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(stale), client.FieldOwner("one"))).
		To(MatchError(apierrors.IsConflict, "a conflict"))

	stored := &corev1.ConfigMap{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "lab", Name: "c"}, stored)).To(Succeed())
	g.Expect(stored.ResourceVersion).To(Equal(owned))
	stored.Data["other"] = "x"
	g.Expect(c.Update(t.Context(), stored)).To(Succeed(), "a fake client continues with the version")
	g.Expect(stored.ResourceVersion).NotTo(Equal(owned))
}
