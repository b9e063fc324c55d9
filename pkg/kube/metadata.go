package kube

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds of which only the metadata is cached, because a hub has many large objects of them.
var (
	Secret                   = corev1.SchemeGroupVersion.WithKind("Secret")
	ConfigMap                = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	CustomResourceDefinition = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// MetadataOf returns an object to watch and read only the metadata of a kind.
func MetadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// StripMetadata returns a cache transform for objects that are cached as metadata. It drops the annotations,
// which may hold copies of whole objects.
func StripMetadata() func(any) (any, error) {
	return func(in any) (any, error) {
		if obj, ok := in.(client.Object); ok {
			obj.SetManagedFields(nil)
			obj.SetAnnotations(nil)
		}
		return in, nil
	}
}
