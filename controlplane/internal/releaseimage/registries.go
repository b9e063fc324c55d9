package releaseimage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
)

// Registries reads the ConfigMap with the mirrors, once for each version of it; nil without such a ConfigMap.
func (r *Resolver) Registries(ctx context.Context, s *scope.Scope) (*preflight.Registries, error) {
	if s.RegistryConfig == nil {
		return nil, nil //nolint:nilnil // mirrors are optional
	}
	return r.registries.Of(s.RegistryConfig, func(key client.ObjectKey) (*preflight.Registries, error) {
		configMap := &corev1.ConfigMap{}
		if err := r.live.Get(ctx, key, configMap); err != nil {
			return nil, fmt.Errorf("cannot read ConfigMap %s: %w", key, err)
		}
		return preflight.ParseRegistries(key.Name, configMap.Data), nil
	})
}
