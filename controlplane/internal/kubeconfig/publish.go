package kubeconfig

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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

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

// Publish publishes assisted-service's kubeconfig as <cluster>-kubeconfig, and again whenever assisted-service gives another.
func (p *Publisher) Publish(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Cluster == nil {
		return false, nil
	}
	if s.Found.Kubeconfig != nil && !s.OwnsKubeconfig(s.Found.Kubeconfig) {
		return true, nil // the user's own
	}
	if !s.HasAdminKubeconfig() {
		return s.Found.Kubeconfig != nil, p.adopt(ctx, s, nil)
	}
	if p.isCopied(s.AdminKubeconfig, s.Found.Kubeconfig) {
		return true, p.adopt(ctx, s, nil)
	}
	var source kubeconfigSource
	if s.Found.Kubeconfig != nil {
		source = parseSource(s.Found.Kubeconfig.Annotations[facts.KubeconfigSourceAnnotation])
	}
	admin, err := p.readAdmin(ctx, s)
	if err != nil {
		return s.Found.Kubeconfig != nil, err
	}
	switch now := sourceOf(admin); {
	case source.digest == now.digest:
		return true, p.adopt(ctx, s, nil)
	case source.digest == "" && source.version == now.version:
		return true, p.adopt(ctx, s, &now)
	}
	return p.publish(ctx, s, admin)
}

// isCopied reports whether a Secret, which may be nil, was copied from assisted-service's kubeconfig as this is now, as
// far as that is known without reading it.
func (p *Publisher) isCopied(admin client.Object, to *metav1.PartialObjectMetadata) bool {
	if to == nil {
		return false
	}
	source := parseSource(to.Annotations[facts.KubeconfigSourceAnnotation])
	return source.digest != "" && (source.version == secretVersion(admin) || source.digest == p.knownDigest(admin))
}

// knownDigest is that of the content of assisted-service's kubeconfig, if this version of its Secret was read before.
func (p *Publisher) knownDigest(admin client.Object) string {
	digest, _ := p.adminDigests.Get(secretVersion(admin))
	return digest
}

func (p *Publisher) readAdmin(ctx context.Context, s *scope.Scope) (*corev1.Secret, error) {
	admin := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(s.AdminKubeconfig), admin); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of assisted-service: %w", err)
	}
	source := sourceOf(admin)
	p.adminDigests.Add(source.version, source.digest)
	return admin, nil
}

// publish copies assisted-service's kubeconfig, with what the user added to the published one.
func (p *Publisher) publish(ctx context.Context, s *scope.Scope, admin *corev1.Secret) (bool, error) {
	content := admin.Data[desired.AdminKubeconfigKey]
	if len(content) == 0 {
		s.Found.Block(status.KubeconfigCopy, controlplanev1.WaitingForKubeconfigReason, fmt.Sprintf("Secret %s has no key %s yet", admin.Name, desired.AdminKubeconfigKey))
		return s.Found.Kubeconfig != nil, nil
	}
	if err := cluster.CheckKubeconfig(content); err != nil {
		s.Found.Block(status.KubeconfigCopy, controlplanev1.KubeconfigRefusedReason, fmt.Sprintf("Secret %s is not published: %s", admin.Name, err))
		return s.Found.Kubeconfig != nil, nil
	}
	if s.Found.Kubeconfig == nil {
		found, err := p.writer.Existing(ctx, desired.Kubeconfig(s.Facts, nil, nil))
		if err != nil {
			return false, err
		}
		if found != nil && !s.OwnsKubeconfig(found) {
			s.Found.Kubeconfig = found
			return true, nil // the user's own
		}
	}
	content, annotations, err := p.withAdditions(ctx, s, content, sourceOf(admin))
	if err != nil {
		return false, err
	}
	published := desired.Kubeconfig(s.Facts, content, annotations)
	metav1.SetMetaDataAnnotation(&published.ObjectMeta, facts.KubeconfigSourceAnnotation, sourceOf(admin).String())
	first := s.Found.Kubeconfig == nil && p.writer.Recent.Pending(writer.Key(published), "") == 0 // else it was published, and is on its way into the cache
	if err := p.writer.ApplyOwned(ctx, s, published, s.Found.Kubeconfig); err != nil {
		return false, fmt.Errorf("cannot publish the kubeconfig: %w", err)
	}
	if first {
		if status.InstallationObserved(s.Stored, s.Phase) {
			measure.Reactions(measure.ReactionTo(measure.KubeconfigWritten, &admin.CreationTimestamp, p.clock.Now()))
		}
		p.writer.Event(s.Stored, "KubeconfigPublished", "Published the kubeconfig in Secret %s", published.Name)
	}
	s.Found.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return true, nil
}

// withAdditions returns assisted-service's kubeconfig with what the user added to the published one, if there is one,
// and the annotations that stay with that.
func (p *Publisher) withAdditions(ctx context.Context, s *scope.Scope, content []byte, source kubeconfigSource) ([]byte, map[string]string, error) {
	if s.Found.Kubeconfig == nil {
		return content, nil, nil
	}
	current, err := kube.Read(ctx, p.live, client.ObjectKeyFromObject(s.Found.Kubeconfig), &corev1.Secret{})
	if err != nil || current == nil {
		return content, nil, err
	}
	same := parseSource(current.Annotations[facts.KubeconfigSourceAnnotation]).digest == source.digest
	if content, err = cluster.Replace(current.Data[secret.KubeconfigDataName], content, same, p.clock.Now()); err != nil {
		return nil, nil, fmt.Errorf("cannot replace the published kubeconfig: %w", err)
	}
	return content, kube.SelectKeys(current.Annotations, facts.KubeconfigAuthoritiesAnnotation), nil
}

// adopt makes a published kubeconfig that came back from a backup ours again, or gives it another source. Its content stays.
func (p *Publisher) adopt(ctx context.Context, s *scope.Scope, source *kubeconfigSource) error {
	if s.Found.Kubeconfig == nil || source == nil && (metav1.IsControlledBy(s.Found.Kubeconfig, s.ControlPlane) || p.writer.LeavesOwners(s, s.Found.Kubeconfig)) {
		return nil
	}
	current := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(s.Found.Kubeconfig), current); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	published := desired.Kubeconfig(s.Facts, current.Data[secret.KubeconfigDataName], kube.SelectKeys(current.Annotations, facts.KubeconfigAnnotations()...))
	if source != nil {
		metav1.SetMetaDataAnnotation(&published.ObjectMeta, facts.KubeconfigSourceAnnotation, source.String())
	}
	published.ResourceVersion = current.ResourceVersion
	if err := p.writer.ApplyOwned(ctx, s, published, current); err != nil {
		return fmt.Errorf("cannot take over the kubeconfig in Secret %s: %w", published.Name, err)
	}
	s.Found.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return nil
}
