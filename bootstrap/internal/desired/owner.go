package desired

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// OwnerOf is the reference by which a Secret goes with the config that it was made for: when that is deleted, and when it is moved.
func OwnerOf(config *bootstrapv1.OpenshiftAssistedConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(config, bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"))
}

// Owns reports whether a Secret was made for a config: it carries the annotation that says from what, which nobody else writes, and belongs to no other object. Of a Secret that has lost its owner,
// as some backups do, recorded says whether the config is known to have had one of this name: the annotation alone proves nothing.
//
// A reference to a config of the same name with another UID is from before a restore: there is no other config of this name in the namespace.
func Owns(config *bootstrapv1.OpenshiftAssistedConfig, secret *metav1.PartialObjectMetadata, annotation string, recorded bool) bool {
	if secret.Annotations[annotation] == "" {
		return false
	}
	if len(secret.OwnerReferences) == 0 {
		return recorded
	}
	return !slices.ContainsFunc(secret.OwnerReferences, func(ref metav1.OwnerReference) bool {
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		return err != nil || version.Group != bootstrapv1.GroupVersion.Group || ref.Kind != "OpenshiftAssistedConfig" || ref.Name != config.Name
	})
}
