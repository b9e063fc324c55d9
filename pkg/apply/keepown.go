package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// KeepOwn returns a cache transform that keeps only those managed fields of an object that an Applier with
// this field manager needs. They record what was applied, across restarts.
func KeepOwn(owner client.FieldOwner) func(any) (any, error) {
	return func(in any) (any, error) {
		if u, ok := in.(*unstructured.Unstructured); ok {
			dropForeignFields(u, owner)
		}
		if obj, err := meta.Accessor(in); err == nil && len(obj.GetManagedFields()) > 0 {
			obj.SetManagedFields(Own(owner, obj.GetManagedFields()))
		}
		return in, nil
	}
}

// dropForeignFields drops the managed fields of other field managers without decoding them. Decoding would be
// the most expensive step of a start.
func dropForeignFields(u *unstructured.Unstructured, owner client.FieldOwner) {
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

// interned holds one copy of each set of fields that was applied to many objects. There are few sets, and the
// objects of a kind follow one another.
var interned = lru.New[string, *metav1.FieldsV1](64)

// Own returns the managed fields that were applied under a field manager, without their time; nil if there
// are none.
func Own(owner client.FieldOwner, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	for _, e := range entries {
		if e.Manager == string(owner) && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			return []metav1.ManagedFieldsEntry{
				{
					Manager: string(
						owner,
					),
					Operation:  metav1.ManagedFieldsOperationApply,
					APIVersion: kube.Intern(e.APIVersion),
					FieldsType: kube.Intern(e.FieldsType),
					FieldsV1:   intern(e.FieldsV1),
				},
			}
		}
	}
	return nil
}

// intern returns the shared copy of a set of fields.
func intern(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if fields == nil {
		return nil
	}
	key := fields.GetRawString()
	if known, found := interned.Get(key); found {
		return known
	}
	fields = metav1.NewFieldsV1(key) // a copy, because the caller may change its own
	interned.Add(key, fields)
	return fields
}

// KeepMetadata adds to kept the labels and annotations of an object that were applied under a field manager.
// It also adds the managed fields that record them.
func KeepMetadata(owner client.FieldOwner, of, kept metav1.Object) {
	own := Own(owner, of.GetManagedFields())
	if len(own) == 0 || own[0].FieldsV1 == nil {
		return
	}
	owned := &fieldpath.Set{}
	if owned.FromJSON(own[0].FieldsV1.GetRawReader()) != nil {
		return // without a record the desired fields are applied again
	}
	kept.SetManagedFields(append(kept.GetManagedFields(), own...))
	kept.SetLabels(addEntries(kept.GetLabels(), of.GetLabels(), ownedEntries(owned, "labels")))
	kept.SetAnnotations(addEntries(kept.GetAnnotations(), of.GetAnnotations(), ownedEntries(owned, "annotations")))
}

// ownedEntries returns the owned fields below a field of the metadata.
func ownedEntries(owned *fieldpath.Set, part string) []fieldpath.PathElement {
	for _, name := range []string{"metadata", part} {
		children, found := owned.Children.Get(fieldpath.FieldNameElement(name))
		if !found {
			return nil
		}
		owned = children
	}
	return elements(owned)
}

func addEntries(kept, all map[string]string, keys []fieldpath.PathElement) map[string]string {
	for _, key := range keys {
		if key.FieldName == nil {
			continue
		}
		if value, found := all[*key.FieldName]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[*key.FieldName] = value
		}
	}
	return kept
}
