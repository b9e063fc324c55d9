package kube

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// Reduce returns a cache transform that replaces an object of type T by the result of reduce. The result
// should be a new object: an item of a list keeps the whole list in memory. reduce must depend on the object
// alone and be idempotent.
func Reduce[T client.Object](reduce func(T) T) func(any) (any, error) {
	return func(in any) (any, error) {
		if obj, ok := in.(T); ok {
			return reduce(obj), nil
		}
		return in, nil
	}
}

// Identity returns the part of the metadata that identifies an object and its version, and whether it is
// being deleted.
func Identity(of *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: of.Namespace, Name: of.Name, UID: of.UID, ResourceVersion: of.ResourceVersion, Generation: of.Generation,
		CreationTimestamp: of.CreationTimestamp, DeletionTimestamp: of.DeletionTimestamp,
	}
}

// MetadataIdentity reduces the metadata of an object to its identity.
func MetadataIdentity(of *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: of.TypeMeta, ObjectMeta: Identity(&of.ObjectMeta)}
}

// SelectKeys returns the named entries of labels or annotations; nil if there are none.
func SelectKeys(all map[string]string, names ...string) map[string]string {
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

// SelectFields returns an object with some fields of another one, by their paths.
func SelectFields(of *unstructured.Unstructured, paths [][]string) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range paths {
		if value, found, err := unstructured.NestedFieldNoCopy(of.Object, path...); found && err == nil {
			_ = unstructured.SetNestedField(kept.Object, value, path...) // cannot fail: the parents are new maps
		}
	}
	return kept
}

// interned holds one copy of each string that many objects have. Its size is above the number of such strings
// of all kinds.
var interned = lru.New[string, string](4096)

// Intern returns the shared copy of a string that many objects have, such as a kind or a reason. Otherwise
// each decoded object would keep its own copy.
func Intern[T ~string](s T) T {
	if known, found := interned.Get(string(s)); found {
		return T(known)
	}
	interned.Add(string(s), string(s))
	return s
}

// InternOwners replaces the versions and kinds of owner references by their shared copies.
func InternOwners(refs []metav1.OwnerReference) []metav1.OwnerReference {
	for i := range refs {
		refs[i].APIVersion, refs[i].Kind = Intern(refs[i].APIVersion), Intern(refs[i].Kind)
	}
	return refs
}

// InternConditions returns conditions whose types and reasons are shared copies.
func InternConditions(all []metav1.Condition) []metav1.Condition {
	kept := slices.Clone(all) // the decoded slice has unused capacity
	for i := range kept {
		c := &kept[i]
		c.Type, c.Status, c.Reason = Intern(c.Type), Intern(c.Status), Intern(c.Reason)
	}
	return kept
}
