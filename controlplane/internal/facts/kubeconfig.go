package facts

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	// KubeconfigSourceAnnotation holds, on <cluster>-kubeconfig, the source of the copy: see
	// kubeconfigSource. On assisted-service's kubeconfig it records that this one is the copy, of
	// <cluster>-kubeconfig.
	KubeconfigSourceAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-source"
	// KubeconfigRenewalAnnotation holds, on <cluster>-kubeconfig, when its token is to be renewed (RFC 3339).
	// It is missing while the Secret is only a copy of assisted-service's.
	KubeconfigRenewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"
	// KubeconfigTokenAnnotation holds, on <cluster>-kubeconfig, the UID of the Secret in the workload cluster that the
	// token in it is bound to.
	KubeconfigTokenAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-token"
	// KubeconfigExpirationAnnotation holds, on <cluster>-kubeconfig, when the token in it ends (RFC 3339).
	KubeconfigExpirationAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-expiration"
	// KubeconfigAuthoritiesAnnotation holds, on <cluster>-kubeconfig, its authorities from the spec: see
	// KubeconfigAuthorities.
	KubeconfigAuthoritiesAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-authorities"
)

// KubeconfigAnnotations returns the annotations of this provider on <cluster>-kubeconfig.
func KubeconfigAnnotations() []string {
	return []string{
		KubeconfigSourceAnnotation,
		KubeconfigRenewalAnnotation,
		KubeconfigTokenAnnotation,
		KubeconfigExpirationAnnotation,
		KubeconfigAuthoritiesAnnotation,
	}
}

// pendingAuthorities replaces the digest of a bundle while the kubeconfig still contains authorities that the
// spec has withdrawn.
const pendingAuthorities = "pending"

// KubeconfigAuthorities records the authorities of a published kubeconfig that come from the spec. It
// contains the digest of the applied bundle. It also contains the fingerprints of the certificates that only
// the bundle added to the kubeconfig.
type KubeconfigAuthorities struct {
	digest string
	Added  sets.Set[string]
}

// RecordAuthorities records that a bundle was applied, completely unless it is pending.
func RecordAuthorities(bundle string, added sets.Set[string], pending bool) KubeconfigAuthorities {
	if pending {
		return KubeconfigAuthorities{digest: pendingAuthorities, Added: added}
	}
	return KubeconfigAuthorities{digest: digestOf(bundle), Added: added}
}

// AuthoritiesOf returns the record of a published kubeconfig.
func AuthoritiesOf(published metav1.Object) KubeconfigAuthorities {
	digest, added, _ := strings.Cut(published.GetAnnotations()[KubeconfigAuthoritiesAnnotation], "/")
	record := KubeconfigAuthorities{digest: digest, Added: sets.New[string]()}
	if added != "" {
		record.Added.Insert(strings.Split(added, ",")...)
	}
	return record
}

// TookOver reports whether the bundle of a spec was applied.
func (a KubeconfigAuthorities) TookOver(bundle string) bool { return a.digest == digestOf(bundle) }

// String returns the value of the annotation; "" if there is nothing to record.
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

// recoverySuffix is the suffix of the Secret with the copy of assisted-service's kubeconfig. It differs from
// the suffix of the kubeconfig of a Cluster, <cluster>-kubeconfig.
const recoverySuffix = "-recovery-credentials"

// RecoverySecretName returns the name of the Secret with the copy of assisted-service's kubeconfig that moves
// with the cluster.
func (f *Facts) RecoverySecretName() string { return f.ControlPlane.Name + recoverySuffix }

// HasToken reports whether a published kubeconfig has a token and is not a copy of assisted-service's.
func HasToken(published *metav1.PartialObjectMetadata) bool {
	_, found := published.Annotations[KubeconfigRenewalAnnotation]
	return found
}

// IsCopy reports whether a kubeconfig of assisted-service is a copy of the published one.
func IsCopy(admin metav1.Object) bool {
	_, copied := admin.GetAnnotations()[KubeconfigSourceAnnotation]
	return copied
}
