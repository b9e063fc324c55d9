package bootdata

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// caBundle is the object that holds the certificate authority of assisted-service.
type caBundle struct {
	bootstrapv1.CABundleReference

	// version changes with the content.
	version string
	// missing reports that the object does not exist; empty if it exists.
	missing string
}

// trustedCA finds the object without reading its content; nil if the user names none.
func (d *Publisher) trustedCA(ctx context.Context, s *scope.Scope) (*caBundle, error) {
	ref := s.Config.Spec.AssistedServiceCA
	if ref == nil || ref.Name == "" {
		return nil, nil //nolint:nilnil // none is wanted
	}
	ca := &caBundle{CABundleReference: *ref}
	ca.Key = cmp.Or(ca.Key, "ca.crt")
	found, err := kube.Read(ctx, d.metadata, client.ObjectKey{Namespace: s.Config.Namespace, Name: ref.Name},
		kube.MetadataOf(corev1.SchemeGroupVersion.WithKind(ref.Kind)))
	if err != nil {
		return nil, err
	}
	if found == nil {
		ca.missing = fmt.Sprintf("%s %s does not exist: create it with the key %s", ca.Kind, ca.Name, ca.Key)
		return ca, nil
	}
	ca.version = found.ResourceVersion
	return ca, nil
}

// readCA reads the certificates; a missing key yields none.
func (d *Publisher) readCA(ctx context.Context, namespace string, ca *caBundle) ([]byte, error) {
	if ca == nil {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: namespace, Name: ca.Name}
	if ca.Kind == kube.ConfigMap.Kind {
		configMap := &corev1.ConfigMap{}
		if err := d.live.Get(ctx, key, configMap); err != nil {
			return nil, fmt.Errorf("cannot read ConfigMap %s: %w", ca.Name, err)
		}
		return []byte(configMap.Data[ca.Key]), nil
	}
	secret := &corev1.Secret{}
	if err := d.live.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cannot read Secret %s: %w", ca.Name, err)
	}
	return secret.Data[ca.Key], nil
}
