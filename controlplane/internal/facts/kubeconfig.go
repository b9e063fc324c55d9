package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

const (
	// KubeconfigSourceAnnotation holds, on <cluster>-kubeconfig, where it was copied from: see kubeconfigSource. On
	// assisted-service's kubeconfig it says that this one is the copy, of <cluster>-kubeconfig.
	KubeconfigSourceAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-source"
	// KubeconfigRenewalAnnotation holds, on <cluster>-kubeconfig, when the token in it is to be renewed (RFC 3339). It
	// is missing as long as the Secret is a mere copy of assisted-service's.
	KubeconfigRenewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"
	// KubeconfigTokenAnnotation holds, on <cluster>-kubeconfig, the UID of the Secret in the workload cluster that the
	// token in it is bound to.
	KubeconfigTokenAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-token"
	// KubeconfigExpirationAnnotation holds, on <cluster>-kubeconfig, when the token in it ends (RFC 3339).
	KubeconfigExpirationAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-expiration"
	// KubeconfigAuthoritiesAnnotation holds, on <cluster>-kubeconfig, which authorities it has because the spec states
	// them: see KubeconfigAuthorities.
	KubeconfigAuthoritiesAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-authorities"
)

// KubeconfigAnnotations are those that we write on <cluster>-kubeconfig.
func KubeconfigAnnotations() []string {
	return []string{KubeconfigSourceAnnotation, KubeconfigRenewalAnnotation, KubeconfigTokenAnnotation, KubeconfigExpirationAnnotation, KubeconfigAuthoritiesAnnotation}
}

// pendingAuthorities stands in the place of the digest of a bundle while authorities that the spec has withdrawn are
// still in the kubeconfig.
const pendingAuthorities = "pending"

// KubeconfigAuthorities record the authorities of a published kubeconfig that come from the spec: the digest of the
// bundle that was taken over, and the fingerprints of the certificates that are in the kubeconfig only for that.
type KubeconfigAuthorities struct {
	digest string
	Added  sets.Set[string]
}

// RecordAuthorities records that a bundle was taken over; not wholly while it is pending.
func RecordAuthorities(bundle string, added sets.Set[string], pending bool) KubeconfigAuthorities {
	if pending {
		return KubeconfigAuthorities{digest: pendingAuthorities, Added: added}
	}
	return KubeconfigAuthorities{digest: digestOf(bundle), Added: added}
}

// AuthoritiesOf is what is recorded on a published kubeconfig.
func AuthoritiesOf(published metav1.Object) KubeconfigAuthorities {
	digest, added, _ := strings.Cut(published.GetAnnotations()[KubeconfigAuthoritiesAnnotation], "/")
	record := KubeconfigAuthorities{digest: digest, Added: sets.New[string]()}
	if added != "" {
		record.Added.Insert(strings.Split(added, ",")...)
	}
	return record
}

// TookOver reports whether the bundle of a spec was taken over.
func (a KubeconfigAuthorities) TookOver(bundle string) bool { return a.digest == digestOf(bundle) }

// String is the value of the annotation; empty when there is nothing to record.
func (a KubeconfigAuthorities) String() string {
	if a.digest == "" && len(a.Added) == 0 {
		return ""
	}
	return a.digest + "/" + strings.Join(sets.List(a.Added), ",")
}

// Pending reports whether authorities that the spec has withdrawn are still in the kubeconfig.
func (a KubeconfigAuthorities) Pending() bool { return a.digest == pendingAuthorities }

func digestOf(bundle string) string {
	if bundle == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(bundle))
	return hex.EncodeToString(sum[:])
}

// recoverySuffix makes the name of the Secret with the copy of assisted-service's kubeconfig. It does not end like the
// kubeconfig of a Cluster, <cluster>-kubeconfig.
const recoverySuffix = "-recovery-credentials"

// RecoverySecretName names the Secret with the copy of assisted-service's kubeconfig that moves with the cluster.
func (f *Facts) RecoverySecretName() string { return f.ControlPlane.Name + recoverySuffix }

// OwnsRecovery reports whether such a copy, as the API server has it, is of this cluster. One that lost its owner, as
// in a restore, is by its labels and the UID of the Cluster that it records: a copy that a former cluster of this name
// left leads elsewhere.
func (f *Facts) OwnsRecovery(kept metav1.Object) bool {
	if owner := metav1.GetControllerOf(kept); owner != nil {
		return owner.UID == f.ControlPlane.UID
	}
	return kept.GetAnnotations()[contract.ClusterUIDAnnotation] != "" && f.Ours(kept)
}

// OwnsKubeconfig reports whether a Secret <cluster>-kubeconfig is ours to keep; it may be nil. Backup tools drop owner
// references; what carries our annotations and belongs to nobody else comes back to us, as its token would end
// otherwise. Without either, it is the user's own.
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

// HasToken reports whether a published kubeconfig is more than a copy of assisted-service's.
func HasToken(published *metav1.PartialObjectMetadata) bool {
	_, found := published.Annotations[KubeconfigRenewalAnnotation]
	return found
}

// HasAdminKubeconfig reports whether assisted-service has a kubeconfig of the cluster on this hub that we did not give
// it: our copy ends with what it was copied from.
func (f *Facts) HasAdminKubeconfig() bool {
	return f.AdminKubeconfig != nil && f.OwnsInstall() && !IsCopy(f.AdminKubeconfig)
}

// IsCopy reports whether a kubeconfig of assisted-service's is a copy of the published one.
func IsCopy(admin metav1.Object) bool {
	_, copied := admin.GetAnnotations()[KubeconfigSourceAnnotation]
	return copied
}
