package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// rememberedClusters is more than one hub has.
const rememberedClusters = 8192

// kubeconfigSource says which version of assisted-service's Secret a kubeconfig was copied from, and the digest of its
// content: other things touch the Secret, too. An earlier version of this provider left out the digest.
type kubeconfigSource struct{ version, digest string }

func parseSource(annotation string) kubeconfigSource {
	parts := strings.SplitN(annotation, "/", 3)
	if len(parts) < 3 {
		return kubeconfigSource{version: annotation}
	}
	return kubeconfigSource{version: parts[0] + "/" + parts[1], digest: parts[2]}
}

func (k kubeconfigSource) String() string { return k.version + "/" + k.digest }

func secretVersion(secret client.Object) string {
	return fmt.Sprintf("%s/%s", secret.GetUID(), secret.GetResourceVersion())
}

func sourceOf(admin *corev1.Secret) kubeconfigSource {
	sum := sha256.Sum256(admin.Data[desired.AdminKubeconfigKey])
	return kubeconfigSource{version: secretVersion(admin), digest: hex.EncodeToString(sum[:])}
}

// kubeconfig publishes assisted-service's kubeconfig as <cluster>-kubeconfig, and again whenever assisted-service gives another.
func (r *Reconciler) kubeconfig(ctx context.Context, s *scope) (bool, error) {
	if s.Cluster == nil {
		return false, nil
	}
	if s.found.Kubeconfig != nil && !s.OwnsKubeconfig(s.found.Kubeconfig) {
		return true, nil // the user's own
	}
	if !s.HasAdminKubeconfig() {
		return s.found.Kubeconfig != nil, r.adopt(ctx, s, nil)
	}
	if r.isCopied(s.AdminKubeconfig, s.found.Kubeconfig) {
		return true, r.adopt(ctx, s, nil)
	}
	var source kubeconfigSource
	if s.found.Kubeconfig != nil {
		source = parseSource(s.found.Kubeconfig.Annotations[facts.KubeconfigSourceAnnotation])
	}
	admin, err := r.readAdmin(ctx, s)
	if err != nil {
		return s.found.Kubeconfig != nil, err
	}
	switch now := sourceOf(admin); {
	case source.digest == now.digest:
		return true, r.adopt(ctx, s, nil)
	case source.digest == "" && source.version == now.version:
		return true, r.adopt(ctx, s, &now)
	}
	return r.publish(ctx, s, admin)
}

// isCopied reports whether a Secret, which may be nil, was copied from assisted-service's kubeconfig as this is now, as
// far as that is known without reading it.
func (r *Reconciler) isCopied(admin client.Object, to *metav1.PartialObjectMetadata) bool {
	if to == nil {
		return false
	}
	source := parseSource(to.Annotations[facts.KubeconfigSourceAnnotation])
	return source.digest != "" && (source.version == secretVersion(admin) || source.digest == r.knownDigest(admin))
}

// knownDigest is that of the content of assisted-service's kubeconfig, if this version of its Secret was read before.
func (r *Reconciler) knownDigest(admin client.Object) string {
	digest, _ := r.adminDigests.Get(secretVersion(admin))
	return digest
}

func (r *Reconciler) readAdmin(ctx context.Context, s *scope) (*corev1.Secret, error) {
	admin := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.AdminKubeconfig), admin); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of assisted-service: %w", err)
	}
	source := sourceOf(admin)
	r.adminDigests.Add(source.version, source.digest)
	return admin, nil
}

// publish copies assisted-service's kubeconfig, with what the user added to the published one.
func (r *Reconciler) publish(ctx context.Context, s *scope, admin *corev1.Secret) (bool, error) {
	content := admin.Data[desired.AdminKubeconfigKey]
	if len(content) == 0 {
		s.found.Block(status.KubeconfigCopy, controlplanev1.WaitingForKubeconfigReason, fmt.Sprintf("Secret %s has no key %s yet", admin.Name, desired.AdminKubeconfigKey))
		return s.found.Kubeconfig != nil, nil
	}
	if err := cluster.CheckKubeconfig(content); err != nil {
		s.found.Block(status.KubeconfigCopy, controlplanev1.KubeconfigRefusedReason, fmt.Sprintf("Secret %s is not published: %s", admin.Name, err))
		return s.found.Kubeconfig != nil, nil
	}
	if s.found.Kubeconfig == nil {
		found, err := r.existing(ctx, desired.Kubeconfig(s.Facts, nil, nil))
		if err != nil {
			return false, err
		}
		if found != nil && !s.OwnsKubeconfig(found) {
			s.found.Kubeconfig = found
			return true, nil // the user's own
		}
	}
	content, annotations, err := r.withAdditions(ctx, s, content, sourceOf(admin))
	if err != nil {
		return false, err
	}
	published := desired.Kubeconfig(s.Facts, content, annotations)
	metav1.SetMetaDataAnnotation(&published.ObjectMeta, facts.KubeconfigSourceAnnotation, sourceOf(admin).String())
	first := s.found.Kubeconfig == nil && r.recent.Pending(appliedKey(published), "") == 0 // else it was published, and is on its way into the cache
	if err := r.applyOwned(ctx, s, published, s.found.Kubeconfig); err != nil {
		return false, fmt.Errorf("cannot publish the kubeconfig: %w", err)
	}
	if first {
		if sawItGoOn(s.stored, s.Phase) {
			measure.Reactions(measure.ReactionTo(measure.KubeconfigWritten, &admin.CreationTimestamp, r.now()))
		}
		r.event(s.stored, "KubeconfigPublished", "Published the kubeconfig in Secret %s", published.Name)
	}
	s.found.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return true, nil
}

// existing reads, past the cache, the metadata of a Secret before its first write; nil when it does not exist, or was
// written a moment ago. The first write is forced: it would overwrite a foreign Secret that the cache does not show
// yet.
func (r *Reconciler) existing(ctx context.Context, wanted *corev1.Secret) (*metav1.PartialObjectMetadata, error) {
	if r.recent.Pending(appliedKey(wanted), "") > 0 {
		return nil, nil //nolint:nilnil // ours is on its way into the cache
	}
	return kube.Read(ctx, r.Live, client.ObjectKeyFromObject(wanted), kube.MetadataOf(kube.Secret))
}

// withAdditions returns assisted-service's kubeconfig with what the user added to the published one, if there is one,
// and the annotations that stay with that.
func (r *Reconciler) withAdditions(ctx context.Context, s *scope, content []byte, source kubeconfigSource) ([]byte, map[string]string, error) {
	if s.found.Kubeconfig == nil {
		return content, nil, nil
	}
	current, err := kube.Read(ctx, r.Live, client.ObjectKeyFromObject(s.found.Kubeconfig), &corev1.Secret{})
	if err != nil || current == nil {
		return content, nil, err
	}
	same := parseSource(current.Annotations[facts.KubeconfigSourceAnnotation]).digest == source.digest
	if content, err = cluster.Replace(current.Data[secret.KubeconfigDataName], content, same, r.now()); err != nil {
		return nil, nil, fmt.Errorf("cannot replace the published kubeconfig: %w", err)
	}
	return content, kube.SelectKeys(current.Annotations, facts.KubeconfigAuthoritiesAnnotation), nil
}

// adopt makes a published kubeconfig that came back from a backup ours again, or gives it another source. Its content stays.
func (r *Reconciler) adopt(ctx context.Context, s *scope, source *kubeconfigSource) error {
	if s.found.Kubeconfig == nil || source == nil && (metav1.IsControlledBy(s.found.Kubeconfig, s.ControlPlane) || r.leavesOwners(s, s.found.Kubeconfig)) {
		return nil
	}
	current := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.found.Kubeconfig), current); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	published := desired.Kubeconfig(s.Facts, current.Data[secret.KubeconfigDataName], kube.SelectKeys(current.Annotations, facts.KubeconfigAnnotations()...))
	if source != nil {
		metav1.SetMetaDataAnnotation(&published.ObjectMeta, facts.KubeconfigSourceAnnotation, source.String())
	}
	published.ResourceVersion = current.ResourceVersion
	if err := r.applyOwned(ctx, s, published, current); err != nil {
		return fmt.Errorf("cannot take over the kubeconfig in Secret %s: %w", published.Name, err)
	}
	s.found.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return nil
}
