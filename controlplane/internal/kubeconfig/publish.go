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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// kubeconfigSource identifies the version of assisted-service's Secret from which a kubeconfig was copied, and the
// digest of its content. The version alone does not suffice, because other clients change the metadata of the Secret.
// An earlier version of this provider did not record the digest.
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
	sum := sha256.Sum256(admin.Data[registration.AdminKubeconfigKey])
	return kubeconfigSource{version: secretVersion(admin), digest: hex.EncodeToString(sum[:])}
}

// Publish publishes assisted-service's kubeconfig as <cluster>-kubeconfig, and again whenever assisted-service changes
// the content.
func (p *Publisher) Publish(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Cluster == nil {
		return false, nil
	}
	if s.Found.Kubeconfig != nil && !ownership.OwnsKubeconfig(s.Facts, s.Found.Kubeconfig) {
		return true, nil // the user wrote this kubeconfig
	}
	if !ownership.HasAdminKubeconfig(s.Facts) {
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
	switch current := sourceOf(admin); {
	case source.digest == current.digest:
		return true, p.adopt(ctx, s, nil)
	case source.digest == "" && source.version == current.version:
		return true, p.adopt(ctx, s, &current)
	}
	return p.publish(ctx, s, admin)
}

// isCopied reports whether a Secret was copied from the current content of assisted-service's kubeconfig, as far as its
// metadata and earlier reads show. The Secret may be nil.
func (p *Publisher) isCopied(admin client.Object, to *metav1.PartialObjectMetadata) bool {
	if to == nil {
		return false
	}
	source := parseSource(to.Annotations[facts.KubeconfigSourceAnnotation])
	return source.digest != "" && (source.version == secretVersion(admin) || source.digest == p.knownDigest(admin))
}

// knownDigest returns the digest of assisted-service's kubeconfig if this version of its Secret was read before, and an
// empty string otherwise.
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

// publish copies assisted-service's kubeconfig, and keeps the additions of the user in the published kubeconfig.
func (p *Publisher) publish(ctx context.Context, s *scope.Scope, admin *corev1.Secret) (bool, error) {
	content := admin.Data[registration.AdminKubeconfigKey]
	if len(content) == 0 {
		s.Found.Block(tasks.KubeconfigCopy, controlplanev1.WaitingForKubeconfigReason,
			fmt.Sprintf("Secret %s has no key %s yet", admin.Name, registration.AdminKubeconfigKey))
		return s.Found.Kubeconfig != nil, nil
	}
	if err := conn.CheckKubeconfig(content); err != nil {
		s.Found.Block(tasks.KubeconfigCopy, controlplanev1.KubeconfigRefusedReason,
			fmt.Sprintf("Secret %s is not published: %s", admin.Name, err))
		return s.Found.Kubeconfig != nil, nil
	}
	if s.Found.Kubeconfig == nil {
		found, err := p.writer.Existing(ctx, desired.Kubeconfig(s.Facts, nil, nil))
		if err != nil {
			return false, err
		}
		if found != nil && !ownership.OwnsKubeconfig(s.Facts, found) {
			s.Found.Kubeconfig = found
			return true, nil // the user wrote this kubeconfig
		}
	}
	content, annotations, err := p.withAdditions(ctx, s, content, sourceOf(admin))
	if err != nil {
		return false, err
	}
	published := desired.Kubeconfig(s.Facts, content, annotations)
	metav1.SetMetaDataAnnotation(&published.ObjectMeta, facts.KubeconfigSourceAnnotation, sourceOf(admin).String())
	// A recent write means that the kubeconfig was published before, and that the cache does not show it yet.
	first := s.Found.Kubeconfig == nil && p.writer.Recent.Pending(apply.Key(published), "") == 0
	if err := p.writer.ApplyOwned(ctx, s, published, s.Found.Kubeconfig); err != nil {
		return false, fmt.Errorf("cannot publish the kubeconfig: %w", err)
	}
	if first {
		if installed.Observed(s.Stored, s.Phase) {
			measure.Reactions(measure.ReactionTo(measure.KubeconfigWritten, &admin.CreationTimestamp, p.clock.Now()))
		}
		s.Found.Event(corev1.EventTypeNormal, "KubeconfigPublished", "Published the kubeconfig in Secret %s", published.Name)
	}
	setPublished(s, published)
	return true, nil
}

// setPublished continues with a written kubeconfig: the status reports its annotations before the cache shows them.
func setPublished(s *scope.Scope, written *corev1.Secret) {
	s.Found.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: written.ObjectMeta}
}

// withAdditions returns assisted-service's kubeconfig with the additions of the user to the published kubeconfig, and
// the annotations that stay. Without a published kubeconfig it returns the content unchanged.
func (p *Publisher) withAdditions(
	ctx context.Context, s *scope.Scope, content []byte, source kubeconfigSource,
) ([]byte, map[string]string, error) {
	if s.Found.Kubeconfig == nil {
		return content, nil, nil
	}
	current, err := kube.Read(ctx, p.live, client.ObjectKeyFromObject(s.Found.Kubeconfig), &corev1.Secret{})
	if err != nil || current == nil {
		return content, nil, err
	}
	sameSource := parseSource(current.Annotations[facts.KubeconfigSourceAnnotation]).digest == source.digest
	if content, err = authorities.MergeChanges(current.Data[secret.KubeconfigDataName], content, sameSource, p.clock.Now()); err != nil {
		return nil, nil, fmt.Errorf("cannot replace the published kubeconfig: %w", err)
	}
	return content, kube.SelectKeys(current.Annotations, facts.KubeconfigAuthoritiesAnnotation), nil
}

// adopt restores the owner reference of a published kubeconfig that was restored from a backup, or records another
// source. The content does not change.
func (p *Publisher) adopt(ctx context.Context, s *scope.Scope, source *kubeconfigSource) error {
	published := s.Found.Kubeconfig
	if published == nil || source == nil && (metav1.IsControlledBy(published, s.ControlPlane) || p.writer.LeavesOwners(s, published)) {
		return nil
	}
	current := &corev1.Secret{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(published), current); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	annotations := kube.SelectKeys(current.Annotations, facts.KubeconfigAnnotations()...)
	adopted := desired.Kubeconfig(s.Facts, current.Data[secret.KubeconfigDataName], annotations)
	if source != nil {
		metav1.SetMetaDataAnnotation(&adopted.ObjectMeta, facts.KubeconfigSourceAnnotation, source.String())
	}
	adopted.ResourceVersion = current.ResourceVersion
	if err := p.writer.ApplyOwned(ctx, s, adopted, current); err != nil {
		return fmt.Errorf("cannot adopt the kubeconfig in Secret %s: %w", adopted.Name, err)
	}
	setPublished(s, adopted)
	return nil
}
