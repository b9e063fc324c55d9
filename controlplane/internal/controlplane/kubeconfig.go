package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

const (
	// KubeconfigSourceAnnotation holds, on <cluster>-kubeconfig, uid and resource version of the Secret that it was copied from.
	KubeconfigSourceAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-source"
	// KubeconfigRenewalAnnotation holds, on <cluster>-kubeconfig, when the token in it is to be renewed (RFC 3339). It is missing as long as the Secret is a
	// mere copy of assisted-service's.
	KubeconfigRenewalAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-renewal"
	// minRenewal is how long a token is used at least.
	minRenewal = time.Minute
	// adminKubeconfigKey is the key of assisted-service's Secret.
	adminKubeconfigKey = "kubeconfig"
)

// kubeconfig publishes assisted-service's kubeconfig as <cluster>-kubeconfig, and again whenever assisted-service rewrites it.
func (r *Reconciler) kubeconfig(ctx context.Context, s *scope) (bool, error) {
	if s.cluster == nil {
		return false, nil
	}
	if s.kubeconfigSecret != nil && !metav1.IsControlledBy(s.kubeconfigSecret, s.controlPlane) {
		return true, nil // the user's own
	}
	if s.adminSecret == nil || isForeignInstall(s) {
		return s.kubeconfigSecret != nil, nil
	}
	source := fmt.Sprintf("%s/%s", s.adminSecret.UID, s.adminSecret.ResourceVersion)
	if s.kubeconfigSecret != nil && s.kubeconfigSecret.Annotations[KubeconfigSourceAnnotation] == source {
		return true, nil
	}
	admin := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.adminSecret), admin); err != nil {
		return false, fmt.Errorf("cannot read the kubeconfig of assisted-service: %w", err)
	}
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
	published := s.publishedKubeconfig(content, map[string]string{KubeconfigSourceAnnotation: source})
	if err := r.apply(ctx, s, published, s.kubeconfigSecret); err != nil {
		return false, fmt.Errorf("cannot publish the kubeconfig: %w", err)
	}
	if first {
		r.event(s, "KubeconfigPublished", "Published the kubeconfig in Secret %s", published.Name)
	}
	s.kubeconfigSecret = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return true, nil
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
	if failure.Kind == workload.KubeconfigRefused {
		return &outcome{controlplanev1.KubeconfigRefusedReason, fmt.Sprintf("Secret %s is not used: %s; %s", s.kubeconfigSecret.Name, failure.Message, s.kubeconfigRemedy())}
	}
	return nil
}

// kubeconfigRemedy says what to do about a published kubeconfig that is of no use.
func (s *scope) kubeconfigRemedy() string {
	if s.adminSecret != nil && !isForeignInstall(s) {
		return fmt.Sprintf("delete the Secret, and it is published anew from assisted-service's kubeconfig (Secret %s), or put a kubeconfig that works into it", s.adminSecret.Name)
	}
	return "put a kubeconfig that works into it"
}

func isForeignInstall(s *scope) bool { return !s.owns(s.install) }

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

// renewKubeconfig gives the published kubeconfig of an installed cluster a token of its own, and a new one when half of its time has passed. The client
// certificate that assisted-service gives is valid for ten years and is never renewed, which the contract of Cluster API does not allow.
func (r *Reconciler) renewKubeconfig(ctx context.Context, s *scope) (bool, error) {
	if !s.installed() || !s.workload.Connected || s.kubeconfigSecret == nil || !metav1.IsControlledBy(s.kubeconfigSecret, s.controlPlane) {
		return true, nil
	}
	if left := renewalOf(s.kubeconfigSecret).Sub(r.now()); left > 0 {
		s.requeue(left)
		return true, nil
	}
	current := &corev1.Secret{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.kubeconfigSecret), current); err != nil {
		return true, fmt.Errorf("cannot read the published kubeconfig: %w", err)
	}
	if renewalOf(current).After(r.now()) {
		return true, nil // the cache is behind, and reconciles again
	}
	s.renewalFailure = r.putToken(ctx, s, current)
	return true, s.renewalFailure
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
	})
	if _, err := r.applier.Apply(ctx, published, current); err != nil {
		return fmt.Errorf("cannot publish the renewed kubeconfig: %w", err)
	}
	s.requeue(renewal.Sub(r.now()))
	r.event(s, "KubeconfigRenewed", "Gave Secret %s a new token, which is valid until %s", published.Name, token.Expires.UTC().Format(time.RFC3339))
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
