package controlplane

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// relabel puts labels back that somebody removed, and records the UID of the Cluster where that is another since a move
// or a restore. Before the installation has begun, the registration does. A deletion needs them: once the one of the
// two is gone, nothing else may tell whose the other was.
func (r *Reconciler) relabel(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Begun && !s.Deleting() {
		return true, nil
	}
	for _, obj := range s.Registration() {
		if s.Owner().Marked(obj) || !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		key, version := reconcile.Key(fmt.Sprintf("labels %T", obj), obj), obj.GetResourceVersion()
		if left := r.writer.Recent.Pending(key, version); left > 0 {
			s.Again.In(left)
			continue
		}
		after := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy
		s.Owner().Mark(after)
		if err := r.Client.Patch(ctx, after, client.MergeFrom(obj), writer.FieldOwner); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("cannot put the labels of %T %s back: %w", obj, obj.GetName(), err)
		}
		r.writer.Recent.Record(key, version)
		if deployment, ok := after.(*hivev1.ClusterDeployment); ok {
			s.Relabeled = deployment
		}
	}
	return true, nil
}
