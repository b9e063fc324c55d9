package apply

import (
	"bytes"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// KeepOwn returns a cache transform that keeps of the managed fields of an object what an Applier under this field
// manager needs. They are the record of what was applied that a restart does not lose.
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

// records holds, once, what was applied to many objects alike: few kinds are, and the objects of a kind come one after the other.
var records = lru.New[string, *metav1.FieldsV1](64)

// Own returns, alone, the entry of what was applied under a field manager, without when; nothing when there is none.
func Own(owner client.FieldOwner, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	for _, e := range entries {
		if e.Manager == string(owner) && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			return []metav1.ManagedFieldsEntry{{
				Manager: string(owner), Operation: metav1.ManagedFieldsOperationApply, APIVersion: kube.Word(e.APIVersion), FieldsType: kube.Word(e.FieldsType), FieldsV1: once(e.FieldsV1),
			}}
		}
	}
	return nil
}

// once returns the one copy of a set of fields.
func once(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if fields == nil {
		return nil
	}
	key := string(fields.Raw)
	if known, found := records.Get(key); found {
		return known
	}
	fields = &metav1.FieldsV1{Raw: []byte(key)} // what was given is somebody's, who may change it
	records.Add(key, fields)
	return fields
}

// KeepMetadata adds to what a cache keeps of an object the labels and annotations that were applied under a field
// manager, whatever their names are, and the record of it.
func KeepMetadata(owner client.FieldOwner, of, kept metav1.Object) {
	own := Own(owner, of.GetManagedFields())
	if len(own) == 0 || own[0].FieldsV1 == nil {
		return
	}
	owned := &fieldpath.Set{}
	if owned.FromJSON(bytes.NewReader(own[0].FieldsV1.Raw)) != nil {
		return // no record: what is stated is applied anew
	}
	kept.SetManagedFields(append(kept.GetManagedFields(), own...))
	kept.SetLabels(with(kept.GetLabels(), of.GetLabels(), below(owned, "labels")))
	kept.SetAnnotations(with(kept.GetAnnotations(), of.GetAnnotations(), below(owned, "annotations")))
}

// below are the fields of a part of the metadata.
func below(owned *fieldpath.Set, part string) []fieldpath.PathElement {
	for _, name := range []string{"metadata", part} {
		children, found := owned.Children.Get(fieldpath.FieldNameElement(name))
		if !found {
			return nil
		}
		owned = children
	}
	return elements(owned)
}

func with(kept, all map[string]string, keys []fieldpath.PathElement) map[string]string {
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
