package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// removeFinalizer is the last phase of a deletion.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope.Scope) (bool, error) {
	return true, r.release(ctx, s)
}

// release removes the finalizer, and closes the connection to the cluster.
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
	r.writer.Recent.Record(reconcile.Key("", before), before.ResourceVersion) // a cache that still shows the finalizer triggers no phase again
	return nil
}
