package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KeepOwn returns a cache transform that keeps of the managed fields of an object what an Applier under this field manager needs. They are the record of what was
// applied that a restart does not lose.
func KeepOwn(owner client.FieldOwner) func(any) (any, error) {
	return func(in any) (any, error) {
		if u, ok := in.(*unstructured.Unstructured); ok {
			dropOthers(u, owner)
		}
		if obj, err := meta.Accessor(in); err == nil && len(obj.GetManagedFields()) > 0 {
			obj.SetManagedFields(Own(owner, obj.GetManagedFields()))
		}
		return in, nil
	}
}

// dropOthers drops the managed fields of other field managers without decoding them, which would cost more than all else at a start.
func dropOthers(u *unstructured.Unstructured, owner client.FieldOwner) {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	own := slices.DeleteFunc(entries, func(entry any) bool {
		e, _ := entry.(map[string]any)
		return e["manager"] != string(owner)
	})
	if len(own) > 0 {
		metadata["managedFields"] = own
	} else {
		delete(metadata, "managedFields")
	}
}

// Own returns, alone, the entry of what was applied under a field manager; nothing when there is none.
func Own(owner client.FieldOwner, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	for _, e := range entries {
		if e.Manager == string(owner) && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			return []metav1.ManagedFieldsEntry{e}
		}
	}
	return nil
}
