package installation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired/registration"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// initialPropagationDelay is the first interval at which a propagation is repeated that another client reverts. The
// interval doubles up to maxPropagationDelay.
const initialPropagationDelay, maxPropagationDelay = 10 * time.Second, 10 * time.Minute

// MetadataWriter writes labels, annotations and marks of the objects of a registration after their creation.
type MetadataWriter struct {
	client client.Client
	writer *writer.Writer
	// backoff spaces propagations that another client reverts.
	backoff *reconcile.Backoff
}

// NewMetadataWriter returns a MetadataWriter.
func NewMetadataWriter(c client.Client, w *writer.Writer, clk clock.PassiveClock) *MetadataWriter {
	return &MetadataWriter{client: c, writer: w, backoff: reconcile.NewBackoff(clk, initialPropagationDelay, maxPropagationDelay)}
}

// Propagate applies the labels and annotations of the control plane to the ClusterDeployment and the AgentClusterInstall. It
// removes those that the control plane no longer has.
func (w *MetadataWriter) Propagate(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, obj := range s.Registration() {
		if !obj.GetDeletionTimestamp().IsZero() {
			continue
		}
		kind, err := w.client.GroupVersionKindFor(obj)
		if err != nil {
			return false, fmt.Errorf("cannot determine the kind of %T: %w", obj, err)
		}
		if err := w.propagateTo(ctx, s, obj, kind); err != nil {
			s.PropagationFailed = true
			return false, fmt.Errorf("cannot propagate labels and annotations to %s %s: %w", kind.Kind, obj.GetName(), err)
		}
	}
	return true, nil
}

// propagateTo applies labels and annotations to an object. It repeats the same write with a backoff, because another client
// may revert each write.
func (w *MetadataWriter) propagateTo(ctx context.Context, s *scope.Scope, obj client.Object, kind schema.GroupVersionKind) error {
	wanted := registration.PassedOn(s.ControlPlane, kind, obj)
	if obj == client.Object(s.Install) {
		if err := w.writer.KeepIgnored(ctx, s, w.writer.Metadata, wanted); err != nil {
			return err
		}
	}
	key := reconcile.Key("metadata "+kind.Kind, obj)
	id := fmt.Sprintf("%s %s %v %v", key, obj.GetUID(), wanted.GetLabels(), wanted.GetAnnotations())
	if left := w.backoff.Left(id); left > 0 {
		s.Again.In(left)
		return nil
	}
	wrote, err := w.writer.ApplyMetadata(ctx, s, key, wanted, obj)
	if err == nil && wrote {
		w.backoff.Record(id)
	}
	return err
}
