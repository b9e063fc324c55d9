// Package writer writes the objects of the hub by server-side apply. It skips a write if the cache shows the desired
// object, or if the cache does not show the last write yet.
package writer

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// FieldOwner owns the fields that this provider writes into objects.
	FieldOwner = client.FieldOwner("openshift-agent-control-plane")
	// MetadataOwner owns the labels and annotations that are propagated from the control plane. It differs from
	// FieldOwner, because server-side apply removes what the same owner applied before and does not state again.
	MetadataOwner = FieldOwner + "-metadata"
)

// Writer writes objects for the steps of a reconcile.
type Writer struct {
	*apply.Writer

	// Metadata applies as MetadataOwner.
	Metadata *apply.Applier
}

// New returns a Writer that has written nothing.
func New(c client.Client, live client.Reader, clk clock.PassiveClock) *Writer {
	return &Writer{Writer: apply.NewWriter(c, live, FieldOwner, clk), Metadata: apply.New(c, MetadataOwner)}
}

// ErrNotCached is the error of Apply if observed is nil and the API server has an object of the name. The object may be
// foreign, and was not written.
var ErrNotCached = errors.New("exists, and the cache does not show it yet")

// Apply writes desired, unless observed has its content or the cache does not show the last write yet. If observed is
// nil, Apply reads the API server first: see Existing.
func (w *Writer) Apply(ctx context.Context, s *scope.Scope, desired, observed client.Object) error {
	if kube.IsNil(observed) {
		existing, err := w.Existing(ctx, desired)
		if err != nil {
			return err
		}
		if existing != nil {
			return fmt.Errorf("%s %s %w", existing.Kind, existing.Name, ErrNotCached)
		}
	}
	return w.ApplyChecked(ctx, s, desired, observed)
}

// ApplyChecked is Apply for a caller that has checked with the API server that no foreign object has the name.
func (w *Writer) ApplyChecked(ctx context.Context, s *scope.Scope, desired, observed client.Object) error {
	wanted, err := Complete(desired)
	if err != nil {
		return err
	}
	if observed, err = w.completeObserved(observed); err != nil {
		return err
	}
	_, err = w.ApplyOnce(ctx, &s.Again, w.Applier, apply.Key(desired), wanted, observed)
	return err
}

// ApplyMetadata writes propagated labels and annotations, and reports whether it wrote; key identifies the write.
func (w *Writer) ApplyMetadata(ctx context.Context, s *scope.Scope, key string, desired, observed client.Object) (wrote bool, err error) {
	return w.ApplyOnce(ctx, &s.Again, w.Metadata, key, desired, observed)
}

// ApplyOwned applies a Secret whose owner references the API server may refuse. Then it writes the Secret without them,
// and the condition KubeconfigAvailable reports the refusal.
func (w *Writer) ApplyOwned(ctx context.Context, s *scope.Scope, desired *corev1.Secret, observed client.Object) error {
	return w.writeOwned(s, desired, observed, func() error { return w.ApplyChecked(ctx, s, desired, observed) })
}

// ApplyOwnedAtOnce is like ApplyOwned, but does not wait until the cache shows the last write.
func (w *Writer) ApplyOwnedAtOnce(ctx context.Context, s *scope.Scope, desired *corev1.Secret, observed client.Object) error {
	return w.writeOwned(s, desired, observed, func() error {
		_, err := w.Applier.Apply(ctx, desired, observed)
		return err
	})
}

func (w *Writer) writeOwned(s *scope.Scope, desired *corev1.Secret, observed client.Object, write func() error) error {
	refused, err := w.WriteOwned(&s.Again, desired, observed, write)
	reportOwners(s, refused)
	return err
}

// LeavesOwners reports whether the owner references of a Secret stay unchanged for some time, because the API server has
// refused other owner references.
func (w *Writer) LeavesOwners(s *scope.Scope, secret client.Object) bool {
	refused := w.OwnersRefused(&s.Again, secret)
	reportOwners(s, refused)
	return refused != ""
}

// reportOwners reports that owner references of a Secret were refused, unless the message is empty.
func reportOwners(s *scope.Scope, refused string) {
	if refused != "" {
		s.Found.Block(tasks.KubeconfigOwner, controlplanev1.KubeconfigAvailableReason, refused)
	}
}

// Refused records that the API server refused a request of the control plane, and schedules the next attempt.
func (w *Writer) Refused(s *scope.Scope, request string) {
	w.Writer.Refused(&s.Again, request, s.ControlPlane)
}

// Accepted records that the API server accepted a request of the control plane, which it may have refused before.
func (w *Writer) Accepted(s *scope.Scope, request string) { w.Writer.Accepted(request, s.ControlPlane) }

// PatchMetadata writes the metadata of the control plane.
func (w *Writer) PatchMetadata(ctx context.Context, s *scope.Scope, after *controlplanev1.OpenshiftAssistedControlPlane) error {
	if err := kube.PatchMetadata(ctx, w.Client, s.Stored, after, FieldOwner); err != nil {
		return fmt.Errorf("cannot write the metadata of the control plane: %w", err)
	}
	s.Stored = after
	return nil
}
