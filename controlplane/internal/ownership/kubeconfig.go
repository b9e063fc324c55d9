package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// OwnsRecovery reports whether a copy of the kubeconfig of assisted-service belongs to this cluster. Backup tools drop
// owner references. A
// copy without owner is identified by its labels and by the UID of the Cluster that it records. The copy of a
// former cluster of this name leads to another cluster.
func OwnsRecovery(f *facts.Facts, kept metav1.Object) bool {
	if owner := metav1.GetControllerOf(kept); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	return kept.GetAnnotations()[contract.ClusterUIDAnnotation] != "" && f.Ours(kept)
}

// OwnsKubeconfig reports whether a Secret <cluster>-kubeconfig is managed by this provider; the Secret may be
// nil. Backup tools drop owner references. A Secret with our annotations and without owner is managed again,
// as its token would expire otherwise. A Secret without both is the user's own.
func OwnsKubeconfig(f *facts.Facts, published *metav1.PartialObjectMetadata) bool {
	if published == nil {
		return false
	}
	if owner := metav1.GetControllerOf(published); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	_, copied := published.Annotations[facts.KubeconfigSourceAnnotation]
	return copied || facts.HasToken(published)
}

// HasAdminKubeconfig reports whether assisted-service has a kubeconfig of the cluster that is not a copy from
// this provider: a copy expires with its source.
func HasAdminKubeconfig(f *facts.Facts) bool {
	return f.AdminKubeconfig != nil && OwnsInstall(f) && !facts.IsCopy(f.AdminKubeconfig)
}
