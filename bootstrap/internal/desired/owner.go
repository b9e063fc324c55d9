package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

// OwnerOf is the reference by which a Secret goes with the config that it was made for: when that is deleted, and when it is moved.
func OwnerOf(config *bootstrapv1.OpenshiftAssistedConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(config, bootstrapv1.GroupVersion.WithKind("OpenshiftAssistedConfig"))
}
