package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// Reduce is a cache transform that puts in the place of an object of type T what reduce makes of it. That should be a
// new object: one of a list keeps all of the list in memory. It must depend on the object alone, and be the same when
// it is applied again.
func Reduce[T client.Object](reduce func(T) T) func(any) (any, error) {
	return func(in any) (any, error) {
		if obj, ok := in.(T); ok {
			return reduce(obj), nil
		}
		return in, nil
	}
}

// Identity is what says of an object which one it is, in which version, and whether it is being deleted.
func Identity(of *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: of.Namespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion, Generation: of.Generation,
		CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp,
	}
}

// MetadataIdentity keeps of metadata that there is such an object.
func MetadataIdentity(of *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: of.TypeMeta, ObjectMeta: Identity(&of.ObjectMeta)}
}

// Only returns the entries of labels or annotations that are named; nil when there are none.
func Only(all map[string]string, names ...string) map[string]string {
	var kept map[string]string
	for _, name := range names {
		if value, found := all[name]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[name] = value
		}
	}
	return kept
}

// Fields returns an object with some fields of another, by their paths.
func Fields(of *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range paths {
		if value, found, err := unstructured.NestedFieldNoCopy(of.Object, path...); found && err == nil {
			_ = unstructured.SetNestedField(kept.Object, value, path...) // a field of an object that is made here
		}
	}
	return kept
}

// words holds, once, what stands in many objects; more than the vocabulary of all kinds.
var words = lru.New[any, any](4096)

// Word returns the one copy of a string that many objects have, as kinds and reasons are. Each object would keep its
// own otherwise, as it was decoded.
func Word[T ~string](s T) T {
	if known, found := words.Get(s); found {
		return known.(T) //nolint:forcetypeassert // the type is a part of the key
	}
	words.Add(s, s)
	return s
}

// Owners are owner references whose versions and kinds are kept once for all objects.
func Owners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range refs {
		refs[i].APIVersion, refs[i].Kind = Word(refs[i].APIVersion), Word(refs[i].Kind)
	}
	return refs
}

// Conditions are conditions whose types and reasons are kept once for all objects.
func Conditions(all []metav1.Condition) []metav1.Condition {
	kept := slices.Clone(all) // which were read into more room than they need
	for i := range kept {
		c := &kept[i]
		c.Type, c.Status, c.Reason = Word(c.Type), Word(c.Status), Word(c.Reason)
	}
	return kept
}
