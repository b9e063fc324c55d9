package controlplane

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// propagate applies the labels and annotations of the control plane to the ClusterDeployment and the AgentClusterInstall. It
// removes those that the control plane no longer has.
func (r *Reconciler) propagate(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, obj := range s.Registration() {
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		kind, err := r.Client.GroupVersionKindFor(obj)
		if err != nil {
			return false, fmt.Errorf("cannot determine the kind of %T: %w", obj, err)
		}
		if err := r.propagateTo(ctx, s, obj, kind); err != nil {
			s.PropagationFailed = true
			return false, fmt.Errorf("cannot propagate labels and annotations to %s %s: %w", kind.Kind, obj.GetName(), err)
		}
	}
	return true, nil
}

// propagateTo applies labels and annotations to an object. It repeats the same write with a backoff, because another client
// may revert each write.
func (r *Reconciler) propagateTo(ctx context.Context, s *scope.Scope, obj client.Object, kind schema.GroupVersionKind) error {
	wanted := registration.PassedOn(s.ControlPlane, kind, obj)
	key := reconcile.Key("metadata "+kind.Kind, obj)
	id := fmt.Sprintf("%s %s %v %v", key, obj.GetUID(), wanted.GetLabels(), wanted.GetAnnotations())
	if r.requestBackoff.IsInBackOffSinceUpdate(id, r.Clock.Now()) {
		left := r.requestBackoff.Get(id)
		if last, known := r.propagated.Get(id); known {
			left -= r.Clock.Now().Sub(last)
		}
		s.Again.In(left)
		return nil
	}
	wrote, err := r.writer.ApplyMetadata(ctx, s, key, wanted, obj)
	if err == nil && wrote {
		now := r.Clock.Now()
		r.requestBackoff.Next(id, now)
		r.requestBackoff.GC()
		r.propagated.Add(id, now)
	}
	return err
}
