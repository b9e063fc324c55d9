package desired

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// SourceAnnotation marks a bootstrap data Secret as ours. Its value is a digest of the source of the data.
const SourceAnnotation = "bootstrap.cluster.x-k8s.io/discovery-source"

// ModifiedAnnotation records, on a bootstrap data Secret, when assisted-service last changed the source of the
// data.
const ModifiedAnnotation = "bootstrap.cluster.x-k8s.io/discovery-modified"

// InfraEnvAnnotation records, on a bootstrap data Secret, the InfraEnv of the data, by the ID that
// assisted-service gave to the InfraEnv.
const InfraEnvAnnotation = "bootstrap.cluster.x-k8s.io/discovery-infraenv"

// OwnerOf returns the owner reference to the config of a Secret. The Secret is deleted and moved together
// with the config.
func OwnerOf(config *bootstrapv1.OpenshiftAssistedConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(config, bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"))
}

// Owns reports whether a Secret was created for a config. It then has the annotation that records its source,
// which only this provider writes, and belongs to no other object. Some backups lose the owner of a Secret.
// The argument recorded then decides: it is true if the config is known to have had a Secret of this name.
//
// A reference to a config of the same name with another UID is from before a restore.
// The namespace has only one config of this name.
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
