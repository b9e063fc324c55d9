package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reduce is a cache transform that puts in the place of an object of type T what reduce makes of it. That should be a new object: one of a list keeps all of the
// list in memory. It must depend on the object alone, and be the same when it is applied again.
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
