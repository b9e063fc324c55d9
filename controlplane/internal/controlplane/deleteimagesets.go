package controlplane

import (
	"context"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// deleteImageSets deletes our ClusterImageSets, also when the configuration names another by now.
func (r *Reconciler) deleteImageSets(ctx context.Context, s *scope.Scope) (bool, error) {
	if len(s.OwnSets) > 0 {
		if there, err := r.isThere(ctx, s); err != nil || !there {
			return false, err
		}
	}
	return true, r.deleteImageSetsBut(ctx, s, "")
}

// dropImageSets deletes those of our ClusterImageSets that were never, or are no longer, what the cluster is registered with.
func (r *Reconciler) dropImageSets(ctx context.Context, s *scope.Scope) (bool, error) {
	if registered := facts.RegisteredSetOf(s.Install); registered != "" && s.OwnsInstall() {
		return true, r.deleteImageSetsBut(ctx, s, registered)
	}
	return true, nil
}

// deleteImageSetsBut deletes our ClusterImageSets but one.
func (r *Reconciler) deleteImageSetsBut(ctx context.Context, s *scope.Scope, keep string) error {
	for i := range s.OwnSets {
		if set := &s.OwnSets[i]; set.Name != keep {
			if err := kube.Delete(ctx, r.Client, set); err != nil {
				return err
			}
		}
	}
	return nil
}
