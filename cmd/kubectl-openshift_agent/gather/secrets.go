package gather

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// describe returns an object whose content was not read: its name, labels, owners and the names of its keys. The API server
// sends the keys as the fields of their writers, and not with their values. The size of a value is not known.
func describe(gvk schema.GroupVersionKind, o *metav1.PartialObjectMetadata) unstructured.Unstructured {
	described := &unstructured.Unstructured{Object: map[string]any{}}
	described.SetGroupVersionKind(gvk)
	described.SetNamespace(o.Namespace)
	described.SetName(o.Name)
	described.SetUID(o.UID)
	described.SetLabels(o.Labels)
	described.SetOwnerReferences(o.OwnerReferences)
	described.SetCreationTimestamp(o.CreationTimestamp)
	described.SetDeletionTimestamp(o.DeletionTimestamp)
	described.SetFinalizers(o.Finalizers)
	if keys := keysOf(o.ManagedFields); len(keys) > 0 {
		values := make([]any, 0, len(keys))
		for _, key := range keys {
			values = append(values, key)
		}
		described.Object["keyNames"] = values
	}
	return *described
}

// keysOf returns the keys of a Secret or ConfigMap that the managed fields name.
func keysOf(managed []metav1.ManagedFieldsEntry) []string {
	keys := sets.New[string]()
	for _, entry := range managed {
		if entry.FieldsV1 == nil {
			continue
		}
		fields := map[string]map[string]json.RawMessage{}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		for _, field := range []string{"f:data", "f:binaryData", "f:stringData"} {
			for key := range fields[field] {
				if name, isKey := strings.CutPrefix(key, "f:"); isKey {
					keys.Insert(name)
				}
			}
		}
	}
	return slices.Sorted(slices.Values(keys.UnsortedList()))
}
