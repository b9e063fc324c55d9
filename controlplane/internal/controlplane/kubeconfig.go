package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

const (
	// KubeconfigSourceAnnotation holds, on <cluster>-kubeconfig, where it was copied from: see kubeconfigSource.
	KubeconfigSourceAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-source"
	// KubeconfigRenewalAnnotation holds, on <cluster>-kubeconfig, when the token in it is to be renewed (RFC 3339). It is missing as long as the Secret is a
	// mere copy of assisted-service's.
	KubeconfigRenewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"
	// KubeconfigTokenAnnotation holds, on <cluster>-kubeconfig, the UID of the Secret in the workload cluster that the token in it is bound to.
	KubeconfigTokenAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-token"
	// minRenewal is how long a token is used at least.
	minRenewal = time.Minute
	// adminKubeconfigKey is the key of assisted-service's Secret.
	adminKubeconfigKey = "kubeconfig"
	// rememberedDigests is more than one hub has clusters.
	rememberedDigests = 8192
)

// kubeconfigSource says which version of assisted-service's Secret a kubeconfig was copied from, and the digest of its content: other things touch
// the Secret, too. An earlier version of this provider left out the digest.
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
	sum := sha256.Sum256(admin.Data[adminKubeconfigKey])
	return kubeconfigSource{version: secretVersion(admin), digest: hex.EncodeToString(sum[:])}
}

// ownsKubeconfig tells whether <cluster>-kubeconfig is ours to keep. Backup tools drop owner references; what carries our annotations and belongs to nobody
// else comes back to us, as its token would end otherwise. Without either, it is the user's own.
func (s *scope) ownsKubeconfig() bool {
	if s.kubeconfigSecret == nil {
		return false
	}
	if owner := metav1.GetControllerOf(s.kubeconfigSecret); owner != nil {
		return owner.UID == s.controlPlane.UID
	}
	_, copied := s.kubeconfigSecret.Annotations[KubeconfigSourceAnnotation]
	return copied || s.kubeconfigHasToken()
}

// kubeconfigHasToken tells whether the published kubeconfig is more than a copy of assisted-service's.
func (s *scope) kubeconfigHasToken() bool {
	_, found := s.kubeconfigSecret.Annotations[KubeconfigRenewalAnnotation]
	return found
}

// kubeconfig publishes assisted-service's kubeconfig as <cluster>-kubeconfig, and again whenever assisted-service gives another.
func (r *Reconciler) kubeconfig(ctx context.Context, s *scope) (bool, error) {
	if s.cluster == nil {
		return false, nil
	}
	if s.kubeconfigSecret != nil && !s.ownsKubeconfig() {
		return true, nil // the user's own
	}
	if !s.hasAdminKubeconfig() {
		return s.kubeconfigSecret != nil, r.adopt(ctx, s, nil)
	}
	var source kubeconfigSource
	if s.kubeconfigSecret != nil {
		source = parseSource(s.kubeconfigSecret.Annotations[KubeconfigSourceAnnotation])
	}
	if source.digest != "" && (source.version == secretVersion(s.adminSecret) || source.digest == r.knownDigest(s.adminSecret)) {
		return true, r.adopt(ctx, s, nil)
	}
	admin, err := r.readAdmin(ctx, s)
	if err != nil {
		return s.kubeconfigSecret != nil, err
	}
	switch now := sourceOf(admin); {
	case source.digest == now.digest:
		return true, r.adopt(ctx, s, nil)
	case source.digest == "" && source.version == now.version:
		return true, r.adopt(ctx, s, &now)
	}
	return r.publish(ctx, s, admin)
}

// hasAdminKubeconfig tells whether assisted-service has a kubeconfig of the cluster on this hub.
func (s *scope) hasAdminKubeconfig() bool { return s.adminSecret != nil && s.owns(s.install) }

// knownDigest is that of the content of assisted-service's kubeconfig, if this version of its Secret was read before.
func (r *Reconciler) knownDigest(admin client.Object) string {
	if digest, known := r.adminDigests.Get(secretVersion(admin)); known {
		return digest.(string) //nolint:forcetypeassert // nothing else is put in
	}
	return ""
}

func (r *Reconciler) readAdmin(ctx context.Context, s *scope) (*corev1.Secret, error) {
	admin := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.adminSecret), admin); err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig of assisted-service: %w", err)
	}
	source := sourceOf(admin)
	r.adminDigests.Add(source.version, source.digest)
	return admin, nil
}

// publish copies assisted-service's kubeconfig as it is.
func (r *Reconciler) publish(ctx context.Context, s *scope, admin *corev1.Secret) (bool, error) {
	content := admin.Data[adminKubeconfigKey]
	if len(content) == 0 {
		s.kubeconfigBlocked = &outcome{controlplanev1.WaitingForKubeconfigReason, fmt.Sprintf("Secret %s has no key %s yet", admin.Name, adminKubeconfigKey)}
		return s.kubeconfigSecret != nil, nil
	}
	if err := workload.CheckKubeconfig(content); err != nil {
		s.kubeconfigBlocked = &outcome{controlplanev1.KubeconfigRefusedReason, fmt.Sprintf("Secret %s is not published: %s", admin.Name, err)}
		return s.kubeconfigSecret != nil, nil
	}
	first := s.kubeconfigSecret == nil
	published := s.publishedKubeconfig(content, map[string]string{KubeconfigSourceAnnotation: sourceOf(admin).String()})
	if err := r.apply(ctx, s, published, s.kubeconfigSecret); err != nil {
		return false, fmt.Errorf("cannot publish the kubeconfig: %w", err)
	}
	if first {
		r.event(s, "KubeconfigPublished", "Published the kubeconfig in Secret %s", published.Name)
	}
	s.kubeconfigSecret = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return true, nil
}

// adopt makes a published kubeconfig that came back from a backup ours again, or gives it another source. Its content stays.
func (r *Reconciler) adopt(ctx context.Context, s *scope, source *kubeconfigSource) error {
	if s.kubeconfigSecret == nil || source == nil && metav1.IsControlledBy(s.kubeconfigSecret, s.controlPlane) {
		return nil
	}
	current := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.kubeconfigSecret), current); err != nil {
		return fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	annotations := map[string]string{}
	for _, name := range []string{KubeconfigSourceAnnotation, KubeconfigRenewalAnnotation, KubeconfigTokenAnnotation} {
		if value, found := current.Annotations[name]; found {
			annotations[name] = value
		}
	}
	if source != nil {
		annotations[KubeconfigSourceAnnotation] = source.String()
	}
	published := s.publishedKubeconfig(current.Data[secret.KubeconfigDataName], annotations)
	published.ResourceVersion = current.ResourceVersion
	if err := r.apply(ctx, s, published, current); err != nil {
		return fmt.Errorf("cannot take over the kubeconfig in Secret %s: %w", published.Name, err)
	}
	s.kubeconfigSecret = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return nil
}

// kubeconfigProblem is why the kubeconfig that is there is of no use, or the one that assisted-service has now; nil: nothing is known against them.
func (s *scope) kubeconfigProblem() *outcome {
	if s.kubeconfigBlocked != nil && s.kubeconfigBlocked.reason == controlplanev1.KubeconfigRefusedReason {
		return s.kubeconfigBlocked
	}
	failure := s.workload.Failure
	if failure == nil || s.kubeconfigSecret == nil || failure.KubeconfigVersion != s.kubeconfigSecret.ResourceVersion {
		return nil
	}
	switch failure.Kind {
	case workload.KubeconfigRefused:
		return &outcome{controlplanev1.KubeconfigRefusedReason, fmt.Sprintf("Secret %s is not used: %s; %s", s.kubeconfigSecret.Name, failure.Message, s.kubeconfigRemedy())}
	case workload.Unauthorized:
		return &outcome{controlplanev1.KubeconfigUnauthorizedReason, fmt.Sprintf("the cluster cannot be connected to: %s; put a kubeconfig that works into Secret %s", failure.Message, s.kubeconfigSecret.Name)}
	}
	return nil
}

// kubeconfigRemedy says what to do about a published kubeconfig that is of no use.
func (s *scope) kubeconfigRemedy() string {
	if s.ownsKubeconfig() && s.hasAdminKubeconfig() {
		return fmt.Sprintf("delete the Secret, and it is published anew from assisted-service's kubeconfig (Secret %s), or put a kubeconfig that works into it", s.adminSecret.Name)
	}
	return "put a kubeconfig that works into it"
}

func (s *scope) publishedKubeconfig(content []byte, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.controlPlane.Namespace,
			Name:            secret.Name(s.cluster.Name, secret.Kubeconfig),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*s.controllerRef()},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{secret.KubeconfigDataName: content},
	}
}

// renewKubeconfig gives the published kubeconfig of an installed cluster a token of its own, and a new one when it was revoked or half of its time has passed. The client
// certificate that assisted-service gives is valid for ten years and is never renewed, which the contract of Cluster API does not allow.
func (r *Reconciler) renewKubeconfig(ctx context.Context, s *scope) (bool, error) {
	if !s.installed() || !s.ownsKubeconfig() {
		return true, nil
	}
	if !s.workload.Connected {
		return true, r.fallBack(ctx, s)
	}
	if left := renewalOf(s.kubeconfigSecret).Sub(r.now()); left > 0 && !s.missesToken() {
		s.again.In(left)
		return true, nil
	}
	current := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.kubeconfigSecret), current); err != nil {
		return true, fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	valid, err := r.tokenValid(ctx, s, current)
	if valid || err != nil {
		return true, err // valid: one of the caches is behind, and reconciles again
	}
	s.renewalFailure = r.putToken(ctx, s, current)
	return true, s.renewalFailure
}

// missesToken tells whether the cluster seems to have revoked the token in the published kubeconfig: the Secret is gone that it was bound to.
func (s *scope) missesToken() bool {
	boundTo, bound := s.kubeconfigSecret.Annotations[KubeconfigTokenAnnotation]
	return bound && s.workload.Tokens != nil && !s.workload.Tokens.Has(types.UID(boundTo))
}

// tokenValid tells whether the token in the published kubeconfig, as the hub has it now, is to stay: its time has not come, and the cluster has not revoked it.
func (r *Reconciler) tokenValid(ctx context.Context, s *scope, current *corev1.Secret) (bool, error) {
	inTime := renewalOf(current).After(r.now())
	if !inTime || !s.missesToken() {
		return inTime, nil
	}
	valid, err := r.Workloads.HasToken(ctx, s.clusterKey(), types.UID(current.Annotations[KubeconfigTokenAnnotation]))
	if apierrors.IsUnauthorized(err) {
		return true, nil // the connection was made with it, and is about to be made anew with assisted-service's kubeconfig
	}
	return valid, err
}

// fallBack publishes assisted-service's kubeconfig in the place of a token that the cluster accepts no more: somebody revoked it, or it came from a backup.
// When that brings a connection, it gets a token again.
func (r *Reconciler) fallBack(ctx context.Context, s *scope) error {
	problem := s.kubeconfigProblem()
	if problem == nil || problem.reason != controlplanev1.KubeconfigUnauthorizedReason || !s.kubeconfigHasToken() || !s.hasAdminKubeconfig() {
		return nil
	}
	admin, err := r.readAdmin(ctx, s)
	if err != nil {
		return err
	}
	if _, err := r.publish(ctx, s, admin); err != nil || s.kubeconfigBlocked != nil {
		return err
	}
	r.warn(s, "KubeconfigReplaced", "The cluster does not accept the token in Secret %s any more; published assisted-service's kubeconfig in its place", s.kubeconfigSecret.Name)
	return nil
}

// putToken gives the published kubeconfig a new token.
func (r *Reconciler) putToken(ctx context.Context, s *scope, current *corev1.Secret) error {
	token, err := r.Workloads.IssueToken(ctx, s.clusterKey())
	if err != nil {
		return err
	}
	content, err := withToken(current.Data[secret.KubeconfigDataName], token.Value)
	if err != nil {
		return fmt.Errorf("cannot renew the kubeconfig in Secret %s: %w", current.Name, err)
	}
	// The clocks of hub and cluster may differ by more than a short token lives.
	renewal := r.now().Add(max(token.Expires.Sub(r.now())/2, minRenewal))
	published := s.publishedKubeconfig(content, map[string]string{
		KubeconfigSourceAnnotation:  current.Annotations[KubeconfigSourceAnnotation],
		KubeconfigRenewalAnnotation: renewal.UTC().Format(time.RFC3339),
		KubeconfigTokenAnnotation:   string(token.BoundToUID),
	})
	if _, err := r.applier.Apply(ctx, published, current); err != nil {
		return fmt.Errorf("cannot publish the renewed kubeconfig: %w", err)
	}
	s.again.In(renewal.Sub(r.now()))
	r.event(s, "KubeconfigRenewed", "Gave Secret %s a new token, which is valid until %s, and as long as Secret kube-system/%s of the cluster exists",
		published.Name, token.Expires.UTC().Format(time.RFC3339), token.BoundTo)
	return nil
}

// renewalOf is when a published kubeconfig is to be renewed: at once as long as there is no token in it.
func renewalOf(published client.Object) time.Time {
	at, err := time.Parse(time.RFC3339, published.GetAnnotations()[KubeconfigRenewalAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// withToken replaces the credentials of a kubeconfig.
func withToken(kubeconfig []byte, token string) ([]byte, error) {
	if err := workload.CheckKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read it: %w", err)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{config.Contexts[config.CurrentContext].AuthInfo: {Token: token}}
	return clientcmd.Write(*config)
}
