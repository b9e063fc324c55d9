package controlplane

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// followWorkers gives workers the version that their MachineDeployment asks for when their Nodes run it. OpenShift
// upgrades them in place, and nobody else would: a topology passes no other version on before they bear it. Not
// earlier, either: Cluster API takes a Machine whose version is not that of its MachineDeployment for one that is being
// upgraded.
func (r *Reconciler) followWorkers(ctx context.Context, s *scope) (bool, error) {
	r.Workloads.RequireReleases(s.ClusterKey(), s.NeedsReleases())
	r.Workloads.RequirePools(s.ClusterKey(), s.NeedsPools())
	var errs []error
	for _, m := range s.LaggingWorkers() {
		wanted := s.WorkerVersion(m)
		if s.Follows(m, wanted) {
			errs = append(errs, r.setVersion(ctx, s, m, wanted))
		}
	}
	return true, errors.Join(errs...)
}

// setVersion writes the version of a Machine that others own, unless it was written a moment ago and has not reached the cache yet.
func (r *Reconciler) setVersion(ctx context.Context, s *scope, m *clusterv1.Machine, version string) error {
	key := reconcile.Key("version", m)
	if left := r.recent.Pending(key, m.ResourceVersion); left > 0 {
		s.again.In(left)
		return nil
	}
	after := m.DeepCopy()
	after.Spec.Version = version
	err := r.Client.Patch(ctx, after, client.MergeFromWithOptions(m, client.MergeFromWithOptimisticLock{}), FieldOwner)
	switch {
	case apierrors.IsConflict(err):
		s.again.In(reconcile.CacheLag)
		return nil
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot write the version of Machine %s: %w", m.Name, err)
	}
	r.recent.Record(key, m.ResourceVersion)
	return nil
}
