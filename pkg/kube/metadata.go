package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of which only the metadata is cached: a hub has many of them, and they are large.
var (
	Secret                   = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap                = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	CustomResourceDefinition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// MetadataOf is the object to watch and read of a kind when only its metadata matters.
func MetadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// StripMetadata is a cache transform for objects that are cached as metadata: it drops the annotations, in which copies
// of whole objects lie.
func StripMetadata() func(any) (any, error) {
	return func(in any) (any, error) {
		if obj, ok := in.(client.Object); ok {
			obj.SetManagedFields(nil)
			obj.SetAnnotations(nil)
		}
		return in, nil
	}
}
