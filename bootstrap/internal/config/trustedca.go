package config

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// caBundle is the object that holds the certificate authority of assisted-service.
type caBundle struct {
	kind, name, key string
	// version changes with the content.
	version string
	// missing says that the object does not exist.
	missing string
}

// trustedCA looks for the object without reading its content; nil when the user names none.
func (r *Reconciler) trustedCA(ctx context.Context, s *scope) (*caBundle, error) {
	ref := s.Config.Spec.AssistedServiceCA
	if ref == nil || ref.Name == "" {
		return nil, nil //nolint:nilnil // none is wanted
	}
	ca := &caBundle{kind: ref.Kind, name: ref.Name, key: ref.Key}
	if ca.key == "" {
		ca.key = "ca.crt"
	}
	found, err := kube.Read(ctx, r.Metadata, client.ObjectKey{Namespace: s.Config.Namespace, Name: ref.Name}, kube.MetadataOf(corev1.SchemeGroupVersion.WithKind(ref.Kind)))
	if err != nil {
		return nil, err
	}
	if found == nil {
		ca.missing = fmt.Sprintf("%s %s does not exist: create it with the key %s", ca.kind, ca.name, ca.key)
		return ca, nil
	}
	ca.version = found.ResourceVersion
	return ca, nil
}

// readCA reads the certificates; a missing key yields none.
func (r *Reconciler) readCA(ctx context.Context, namespace string, ca *caBundle) ([]byte, error) {
	if ca == nil {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: ca.name}
	if ca.kind == "ConfigMap" {
		configMap := &corev1.ConfigMap{}
		if err := r.Live.Get(ctx, key, configMap); err != nil {
			return nil, fmt.Errorf("cannot read ConfigMap %s: %w", ca.name, err)
		}
		return []byte(configMap.Data[ca.key]), nil
	}
	secret := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read Secret %s: %w", ca.name, err)
	}
	return secret.Data[ca.key], nil
}
