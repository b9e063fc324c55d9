// Package writer writes the objects of the hub by server-side apply. It skips a write if the cache shows the desired
// object, or if the cache does not show the last write yet.
package writer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// FieldOwner owns the fields that this provider writes into objects.
	FieldOwner = client.FieldOwner("openshift-agent-control-plane")
	// MetadataOwner owns the labels and annotations that are propagated from the control plane. It differs from
	// FieldOwner, because server-side apply removes what the same owner applied before and does not state again.
	MetadataOwner = FieldOwner + "-metadata"
)

// RefusedRetry is the interval at which a request is repeated that the API server refused. The same request usually fails
// again, but an admission webhook may depend on what cannot be watched, such as a feature gate of its own.
const RefusedRetry = 5 * time.Minute

// Writer writes objects and emits Events for the steps of a reconcile.
type Writer struct {
	// Client writes, Live reads past the cache; Recorder emits Events.
	Client   client.Client
	Live     client.Reader
	Recorder record.EventRecorder
	// Recent holds the writes that the cache does not show yet.
	Recent *reconcile.RecentWrites
	// Owners writes owner references that the API server may refuse.
	Owners *reconcile.Owners
	// Applier applies as FieldOwner, Metadata as MetadataOwner.
	Applier, Metadata *apply.Applier
}

// New returns a Writer that remembers its writes in recent.
func New(
	c client.Client, live client.Reader, recorder record.EventRecorder, recent *reconcile.RecentWrites, owners *reconcile.Owners,
) *Writer {
	return &Writer{
		Client: c, Live: live, Recorder: recorder, Recent: recent, Owners: owners,
		Applier: apply.New(c, FieldOwner), Metadata: apply.New(c, MetadataOwner),
	}
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
	_, err := w.apply(ctx, s, w.Applier, Key(desired), desired, observed)
	return err
}

// ApplyMetadata writes propagated labels and annotations, and reports whether it wrote; key identifies the write.
func (w *Writer) ApplyMetadata(ctx context.Context, s *scope.Scope, key string, desired, observed client.Object) (wrote bool, err error) {
	return w.apply(ctx, s, w.Metadata, key, desired, observed)
}

func (w *Writer) apply(
	ctx context.Context, s *scope.Scope, by *apply.Applier, key string, desired, observed client.Object,
) (wrote bool, err error) {
	version := kube.VersionOf(observed)
	if left := w.Recent.Pending(key, version); left > 0 {
		s.Again.In(left)
		return false, nil
	}
	wrote, err = by.Apply(ctx, desired, observed)
	if err == nil && wrote {
		w.Recent.Record(key, version)
	}
	return wrote, err
}

// Key identifies the application of an object in Recent.
func Key(obj client.Object) string {
	return reconcile.Key(fmt.Sprintf("%T%s", obj, obj.GetObjectKind().GroupVersionKind().Kind), obj)
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
	refused, err := w.Owners.Write(desired, observed, write)
	w.reportOwners(s, desired, refused)
	return err
}

// LeavesOwners reports whether the owner references of a Secret stay unchanged for some time, because the API server has
// refused other owner references.
func (w *Writer) LeavesOwners(s *scope.Scope, secret client.Object) bool {
	left := w.Owners.Left(secret)
	w.reportOwners(s, secret, left)
	return left > 0
}

// reportOwners reports that owner references of a Secret were refused, and requeues the control plane when they are
// written again. A time of zero means that they were not refused.
func (w *Writer) reportOwners(s *scope.Scope, secret client.Object, left time.Duration) {
	if left == 0 {
		return
	}
	s.Again.In(left)
	s.Found.Block(status.KubeconfigOwner, controlplanev1.KubeconfigAvailableReason,
		reconcile.OwnersRefusedMessage("Secret", secret.GetName(), reconcile.HubRights))
}

// Existing reads the metadata of an object from the API server before the first write. It returns nil if the object
// does not exist, or if this provider has just written it. The first write is forced: without this check it would
// overwrite a foreign object that the cache does not show yet.
func (w *Writer) Existing(ctx context.Context, wanted client.Object) (*metav1.PartialObjectMetadata, error) {
	if w.Recent.Pending(Key(wanted), "") > 0 {
		return nil, nil //nolint:nilnil // the cache does not show our own write yet
	}
	kind, err := w.Client.GroupVersionKindFor(wanted)
	if err != nil {
		return nil, fmt.Errorf("cannot determine the kind of %T: %w", wanted, err)
	}
	return kube.Read(ctx, w.Live, client.ObjectKeyFromObject(wanted), kube.MetadataOf(kind))
}

// PatchMetadata writes the metadata of the control plane.
func (w *Writer) PatchMetadata(ctx context.Context, s *scope.Scope, after *controlplanev1.OpenshiftAssistedControlPlane) error {
	if err := kube.PatchMetadata(ctx, w.Client, s.Stored, after, FieldOwner); err != nil {
		return fmt.Errorf("cannot write the metadata of the control plane: %w", err)
	}
	s.Stored = after
	return nil
}

// Event emits an Event of type Normal.
func (w *Writer) Event(about *controlplanev1.OpenshiftAssistedControlPlane, reason, format string, args ...any) {
	w.Recorder.Eventf(about, corev1.EventTypeNormal, reason, format, args...)
}

// Warn emits an Event of type Warning.
func (w *Writer) Warn(about *controlplanev1.OpenshiftAssistedControlPlane, reason, format string, args ...any) {
	w.Recorder.Eventf(about, corev1.EventTypeWarning, reason, format, args...)
}
