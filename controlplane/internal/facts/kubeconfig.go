package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// KubeconfigSourceAnnotation holds, on <cluster>-kubeconfig, where it was copied from: see kubeconfigSource. On assisted-service's kubeconfig it says that this one is the
	// copy, of <cluster>-kubeconfig.
	KubeconfigSourceAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-source"
	// KubeconfigRenewalAnnotation holds, on <cluster>-kubeconfig, when the token in it is to be renewed (RFC 3339). It is missing as long as the Secret is a
	// mere copy of assisted-service's.
	KubeconfigRenewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"
	// KubeconfigTokenAnnotation holds, on <cluster>-kubeconfig, the UID of the Secret in the workload cluster that the token in it is bound to.
	KubeconfigTokenAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-token"
)

// OwnsKubeconfig tells whether a Secret <cluster>-kubeconfig is ours to keep; it may be nil. Backup tools drop owner references; what carries our annotations and
// belongs to nobody else comes back to us, as its token would end otherwise. Without either, it is the user's own.
func (f *Facts) OwnsKubeconfig(published *metav1.PartialObjectMetadata) bool {
	if published == nil {
		return false
	}
	if owner := metav1.GetControllerOf(published); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	_, copied := published.Annotations[KubeconfigSourceAnnotation]
	return copied || HasToken(published)
}

// HasToken tells whether a published kubeconfig is more than a copy of assisted-service's.
func HasToken(published *metav1.PartialObjectMetadata) bool {
	_, found := published.Annotations[KubeconfigRenewalAnnotation]
	return found
}

// HasAdminKubeconfig tells whether assisted-service has a kubeconfig of the cluster on this hub that we did not give it: our copy ends with what it was copied from.
func (f *Facts) HasAdminKubeconfig() bool {
	return f.AdminKubeconfig != nil && f.OwnsInstall() && !IsCopy(f.AdminKubeconfig)
}

// IsCopy tells whether a kubeconfig of assisted-service's is a copy of the published one.
func IsCopy(admin metav1.Object) bool {
	_, copied := admin.GetAnnotations()[KubeconfigSourceAnnotation]
	return copied
}
