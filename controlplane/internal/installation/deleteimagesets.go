package installation

import (
	"context"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// DeleteImageSets deletes our ClusterImageSets, also those that the configuration no longer names.
func (r *Registrar) DeleteImageSets(ctx context.Context, s *scope.Scope) (bool, error) {
	if len(s.OwnSets) > 0 {
		if exists, err := r.exists(ctx, s); err != nil || !exists {
			return false, err
		}
	}
	return true, r.deleteImageSetsBut(ctx, s, "")
}

// DropImageSets deletes our ClusterImageSets but the one with which the cluster is registered.
func (r *Registrar) DropImageSets(ctx context.Context, s *scope.Scope) (bool, error) {
	if registered := facts.RegisteredSetOf(s.Install); registered != "" && ownership.OwnsInstall(s.Facts) {
		return true, r.deleteImageSetsBut(ctx, s, registered)
	}
	return true, nil
}

// deleteImageSetsBut deletes our ClusterImageSets but one.
func (r *Registrar) deleteImageSetsBut(ctx context.Context, s *scope.Scope, keep string) error {
	for i := range s.OwnSets {
		if set := &s.OwnSets[i]; set.Name != keep {
			if err := kube.Delete(ctx, r.client, set); err != nil {
				return err
			}
		}
	}
	return nil
}
