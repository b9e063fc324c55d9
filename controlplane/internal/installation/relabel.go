package installation

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Relabel restores the labels of the registration that another client removed, and records the UID of a Cluster that was
// moved or restored. Before the installation begins, the registration does so. A deletion needs the labels: once one of the
// two objects is deleted, they alone may show the owner of the other.
func (w *MetadataWriter) Relabel(ctx context.Context, s *scope.Scope) (bool, error) {
	_, err := w.relabel(ctx, s)
	return err == nil, err
}

// relabel is Relabel. It returns the ClusterDeployment as it is afterwards.
func (w *MetadataWriter) relabel(ctx context.Context, s *scope.Scope) (*hivev1.ClusterDeployment, error) {
	current := s.Deployment
	if !s.Begun && !s.Deleting() {
		return current, nil
	}
	for _, obj := range s.Registration() {
		if s.Owner().Marked(obj) || !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		key, version := reconcile.Key(fmt.Sprintf("labels %T", obj), obj), obj.GetResourceVersion()
		if left := w.writer.Recent.Pending(key, version); left > 0 {
			s.Again.In(left)
			continue
		}
		after := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy
		s.Owner().Mark(after)
		if err := w.client.Patch(ctx, after, client.MergeFrom(obj), writer.FieldOwner); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot restore the labels of %T %s: %w", obj, obj.GetName(), err)
		}
		w.writer.Recent.Record(key, version)
		if deployment, ok := after.(*hivev1.ClusterDeployment); ok {
			current = deployment
		}
	}
	return current, nil
}
