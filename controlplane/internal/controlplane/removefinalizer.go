package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// removeFinalizer lets the object go.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope.Scope) (bool, error) {
	return true, r.release(ctx, s)
}

// release lets the object go, and forgets its cluster.
func (r *Reconciler) release(ctx context.Context, s *scope.Scope) error {
	after := s.Stored.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, controlplanev1.OpenshiftAssistedControlPlaneFinalizer) {
		return nil
	}
	s.Released = true
	r.Workloads.Forget(s.ClusterKey())
	before := s.Stored
	if err := r.writer.PatchMetadata(ctx, s, after); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.writer.Recent.Record(reconcile.Key("", before), before.ResourceVersion) // a cache that still has it asks for nothing to be done again
	return nil
}
