package clusterversion

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// FollowWorkers sets the version of workers to the version of their MachineDeployment once their Nodes run that version.
// OpenShift upgrades workers in place, and no other controller sets their version. A topology propagates no later
// version before the workers have the current one. FollowWorkers does not set the version earlier: Cluster API counts a
// Machine whose version differs from that of its MachineDeployment as being upgraded.
func (u *Upgrader) FollowWorkers(ctx context.Context, s *scope.Scope) (bool, error) {
	u.workloads.RequireReleases(s.ClusterKey(), s.NeedsReleases())
	u.workloads.RequirePools(s.ClusterKey(), s.NeedsPools())
	var errs []error
	for _, m := range s.LaggingWorkers() {
		wanted := s.WorkerVersion(m)
		if s.Follows(m, wanted) {
			errs = append(errs, u.setVersion(ctx, s, m, wanted))
		}
	}
	return true, errors.Join(errs...)
}

// setVersion writes the version of a Machine that another controller owns, unless the cache does not show the last write
// yet.
func (u *Upgrader) setVersion(ctx context.Context, s *scope.Scope, m *clusterv1.Machine, version string) error {
	key := reconcile.Key("version", m)
	if left := u.writer.Recent.Pending(key, m.ResourceVersion); left > 0 {
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
	return nil
}
