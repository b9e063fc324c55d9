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

// passOn gives the ClusterDeployment and the AgentClusterInstall the labels and annotations of the control plane, and
// takes back those that it has no more.
func (r *Reconciler) passOn(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, obj := range s.Registration() {
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		kind, err := r.Client.GroupVersionKindFor(obj)
		if err != nil {
			return false, fmt.Errorf("cannot tell the kind of %T: %w", obj, err)
		}
		if err := r.passOnTo(ctx, s, obj, kind); err != nil {
			s.PropagationFailed = true
			return false, fmt.Errorf("cannot pass labels and annotations on to %s %s: %w", kind.Kind, obj.GetName(), err)
		}
	}
	return true, nil
}

// passOnTo writes what an object is given. What was written is not written again at once: others may write something
// else there, whenever they see it.
func (r *Reconciler) passOnTo(ctx context.Context, s *scope.Scope, obj client.Object, kind schema.GroupVersionKind) error {
	wanted := registration.PassedOn(s.ControlPlane, kind, obj)
	key := reconcile.Key("metadata "+kind.Kind, obj)
	id := fmt.Sprintf("%s %s %v %v", key, obj.GetUID(), wanted.GetLabels(), wanted.GetAnnotations())
	if r.requestBackoff.IsInBackOffSinceUpdate(id, r.Clock.Now()) {
		left := r.requestBackoff.Get(id)
		if last, known := r.passed.Get(id); known {
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
		r.passed.Add(id, now)
	}
	return err
}
