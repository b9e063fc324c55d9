package clusterversion

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// FollowWorkers sets the version of workers to that of their kubelets, or of their MachineDeployment: no other controller
// does. See facts.FollowedVersion.
func (u *Upgrader) FollowWorkers(ctx context.Context, s *scope.Scope) (bool, error) {
	u.workloads.RequirePools(s.ClusterKey(), versioning.NeedsPools(s.Facts))
	var errs []error
	for _, m := range s.Workers {
		if version := versioning.FollowedVersion(s.Facts, m); version != "" {
			errs = append(errs, u.setVersion(ctx, s, m, version))
		}
	}
	return true, errors.Join(errs...)
}

// setVersion writes the version of a Machine that another controller owns, unless the cache does not show the last write
// yet. The MachineSet controller applies the version of its cache, and so may revert a write. The same version is written
// again only after a backoff.
func (u *Upgrader) setVersion(ctx context.Context, s *scope.Scope, m *clusterv1.Machine, version string) error {
	key := reconcile.Key("version", m)
	if left := u.writer.Recent.Pending(key, m.ResourceVersion); left > 0 {
		s.Again.In(left)
		return nil
	}
	id := fmt.Sprintf("%s %s", m.UID, version)
	if left := u.backoff.Left(id); left > 0 {
		s.Again.In(left)
		return nil
	}
	after := m.DeepCopy()
	after.Spec.Version = version
	err := u.client.Patch(ctx, after, client.MergeFromWithOptions(m, client.MergeFromWithOptimisticLock{}), writer.FieldOwner)
	switch {
	case apierrors.IsConflict(err):
		s.Again.In(reconcile.CacheLag)
		return nil
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot write the version of Machine %s: %w", m.Name, err)
	}
	u.writer.Recent.Record(key, m.ResourceVersion)
	u.backoff.Record(id)
	return nil
}
