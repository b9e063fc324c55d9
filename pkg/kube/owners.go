package kube

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HasOwners reports whether an object has all wanted owner references, each with the same fields. util.HasOwnerRef of
// Cluster API compares no UID.
func HasOwners(obj client.Object, wanted []metav1.OwnerReference) bool {
	have := obj.GetOwnerReferences()
	return !slices.ContainsFunc(wanted, func(w metav1.OwnerReference) bool {
		return !slices.ContainsFunc(have, func(h metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(h, w) })
	})
}
