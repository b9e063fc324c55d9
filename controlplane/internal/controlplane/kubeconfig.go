package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

const (
	// KubeconfigSourceAnnotation holds, on <cluster>-kubeconfig, uid and resource version of the Secret that it was copied from.
	KubeconfigSourceAnnotation = "controlplane.cluster.x-k8s.io/kubeconfig-source"
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
	first := s.kubeconfigSecret == nil
	published := s.kubeconfigCopy(content, source)
	if err := r.apply(ctx, s, published, s.kubeconfigSecret); err != nil {
		return false, fmt.Errorf("cannot publish the kubeconfig: %w", err)
	}
	if first {
		r.event(s, "KubeconfigPublished", "Published the kubeconfig in Secret %s", published.Name)
	}
	s.kubeconfigSecret = &metav1.PartialObjectMetadata{ObjectMeta: published.ObjectMeta}
	return true, nil
}

func isForeignInstall(s *scope) bool { return s.install == nil || !s.ours(s.install) }

func (s *scope) kubeconfigCopy(content []byte, source string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.controlPlane.Namespace,
			Name:            secret.Name(s.cluster.Name, secret.Kubeconfig),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			Annotations:     map[string]string{KubeconfigSourceAnnotation: source},
			OwnerReferences: []metav1.OwnerReference{*s.controllerRef()},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{secret.KubeconfigDataName: content},
	}
}
