package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// placeholderPullSecret is a valid pull secret without rights, because assisted-service requires one:
// placeholder:secret.
const placeholderPullSecret = `{"auths":{"fake-pull-secret":{"auth":"cGxhY2Vob2xkZXI6c2VjcmV0Cg=="}}}`

// PlaceholderPullSecret returns the pull secret of a cluster that needs none.
func PlaceholderPullSecret(f *facts.Facts) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       f.ControlPlane.Namespace,
			Name:            f.PullSecretName(),
			Labels:          f.Labels(),
			OwnerReferences: []metav1.OwnerReference{*controllerRef(f)},
		},
		Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(placeholderPullSecret)},
	}
}

// Kubeconfig returns the Secret <cluster>-kubeconfig with a content.
func Kubeconfig(f *facts.Facts, content []byte, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       f.ControlPlane.Namespace,
			Name:            secret.Name(f.Cluster.Name, secret.Kubeconfig),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: f.Cluster.Name},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{*controllerRef(f)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{secret.KubeconfigDataName: content},
	}
}

// RecoveryCredentials returns the Secret with the copy of assisted-service's kubeconfig. clusterctl moves it,
// because the control plane owns it.
func RecoveryCredentials(f *facts.Facts, content []byte, source string) *corev1.Secret {
	kept := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       f.ControlPlane.Namespace,
			Name:            f.RecoverySecretName(),
			Annotations:     map[string]string{facts.KubeconfigSourceAnnotation: source},
			OwnerReferences: []metav1.OwnerReference{*controllerRef(f)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{registration.AdminKubeconfigKey: content},
	}
	f.Owner().Mark(kept)
	return kept
}

// controllerRef returns the owner reference to the control plane as controller.
func controllerRef(f *facts.Facts) *metav1.OwnerReference {
	return metav1.NewControllerRef(f.ControlPlane, controlplanev1.GroupVersion.WithKind(facts.ControlPlaneKind))
}
