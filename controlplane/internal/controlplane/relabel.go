package controlplane

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// relabel puts labels back that somebody removed, and records the UID of the Cluster where that is another since a move
// or a restore. Before the installation has begun, the registration does. A deletion needs them: once the one of the
// two is gone, nothing else may tell whose the other was.
func (r *Reconciler) relabel(ctx context.Context, s *scope) (bool, error) {
	if !s.Begun && !s.Deleting() {
		return true, nil
	}
	for _, obj := range s.registration() {
		if s.Owner().Marked(obj) || !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		key, version := reconcile.Key(fmt.Sprintf("labels %T", obj), obj), obj.GetResourceVersion()
		if left := r.recent.Pending(key, version); left > 0 {
			s.again.In(left)
			continue
		}
		after := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy
		s.Owner().Mark(after)
		if err := r.Client.Patch(ctx, after, client.MergeFrom(obj), FieldOwner); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot put the labels of %T %s back: %w", obj, obj.GetName(), err)
		}
		r.recent.Record(key, version)
		if deployment, ok := after.(*hivev1.ClusterDeployment); ok {
			s.relabelled = deployment
		}
	}
	return true, nil
}
