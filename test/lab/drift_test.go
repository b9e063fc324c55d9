package lab

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDriftIgnoresOwnersOfFields(t *testing.T) {
	object := func(edit func(*unstructured.Unstructured)) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"kind": "Cluster", "apiVersion": "v1",
			"spec": map[string]any{"replicas": int64(3)},
		}}
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubectl"}})
		edit(o)
		return o
	}
	for situation, tc := range map[string]struct {
		edit       func(*unstructured.Unstructured)
		difference string
	}{
		"nothing":         {func(*unstructured.Unstructured) {}, ""},
		"another owner":   {func(o *unstructured.Unstructured) { o.SetManagedFields(nil) }, ""},
		"a value":         {func(o *unstructured.Unstructured) { set(o, int64(5), "spec", "replicas") }, `{"spec":{"replicas":5}}`},
		"a field":         {func(o *unstructured.Unstructured) { set(o, true, "spec", "paused") }, `{"spec":{"paused":true}}`},
		"a field removed": {func(o *unstructured.Unstructured) { set(o, map[string]any{}, "spec") }, `{"spec":{"replicas":null}}`},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(difference(object(func(*unstructured.Unstructured) {}), object(tc.edit))).To(Equal(tc.difference))
		})
	}
}
