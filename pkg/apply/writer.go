package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Writer writes the objects of a provider, and remembers what the cache and the API server do not show: its last writes
// and refused requests. The writers of both providers embed it.
type Writer struct {
	// Client writes. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Applier applies as the field manager of the provider.
	Applier *Applier
	// Recent holds the writes that the cache does not show yet.
	Recent *reconcile.RecentWrites
	// Refusals spaces the attempts of requests that the API server refused.
	Refusals *reconcile.Backoff
	// Trials are the dry runs of objects that are deleted in order to recreate them.
	Trials *Trials

	// Owners writes owner references that the API server may refuse.
	Owners *reconcile.Owners
}

// NewWriter returns a Writer that has written nothing.
func NewWriter(c client.Client, live client.Reader, owner client.FieldOwner, clk clock.PassiveClock) *Writer {
	w := &Writer{
		Client: c, Live: live, Applier: New(c, owner), Recent: reconcile.NewRecentWrites(clk), Refusals: reconcile.NewRefusals(clk),
	}
	w.Trials = NewTrials(w.Applier, w.Refusals)
	w.Owners = reconcile.NewOwners(w.Refusals)
	return w
}

// ApplyOnce applies desired with an Applier, unless observed has its content or the cache does not show the last write
// yet. Then again gets the time until the cache is trusted as it is. key identifies the write in Recent.
func (w *Writer) ApplyOnce(
	ctx context.Context, again *reconcile.Requeue, by *Applier, key string, desired, observed client.Object,
) (wrote bool, err error) {
	version := kube.VersionOf(observed)
	if left := w.Recent.Pending(key, version); left > 0 {
		again.In(left)
		return false, nil
	}
	wrote, err = by.Apply(ctx, desired, observed)
	if err == nil && wrote {
		w.Recent.RecordStored(key, desired.GetResourceVersion(), version)
	}
	return wrote, err
}

// Annotate sets annotations of an object as the field manager of the provider, see [kube.Annotate]. key identifies the write
// in Recent. obj stays as it was read.
func (w *Writer) Annotate(ctx context.Context, key string, obj client.Object, annotations map[string]*string) error {
	stored := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy of the same type
	if err := kube.Annotate(ctx, w.Client, stored, annotations, w.Applier.owner); err != nil {
		return err
	}
	w.Recent.RecordStored(key, stored.GetResourceVersion(), obj.GetResourceVersion())
	return nil
}

// Key identifies the application of an object in Recent.
func Key(obj client.Object) string {
	return reconcile.Key(fmt.Sprintf("%T%s", obj, obj.GetObjectKind().GroupVersionKind().Kind), obj)
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

// WriteOwned calls write, which writes a Secret over found. If the API server refuses the owner references of the
// Secret, all other fields are written. Then refused is the message of a condition that reports the refusal.
func (w *Writer) WriteOwned(again *reconcile.Requeue, secret, found client.Object, write func() error) (refused string, err error) {
	left, err := w.Owners.Write(secret, found, write)
	if left == 0 {
		return "", err
	}
	again.In(left)
	return reconcile.OwnersRefusedMessage("Secret", secret.GetName(), reconcile.HubRights), err
}

// OwnersRefused returns the message of WriteOwned for a Secret whose owner references were refused, and stay unchanged
// for some time. Otherwise it returns an empty string.
func (w *Writer) OwnersRefused(again *reconcile.Requeue, secret client.Object) string {
	left := w.Owners.Left(secret)
	if left == 0 {
		return ""
	}
	again.In(left)
	return reconcile.OwnersRefusedMessage("Secret", secret.GetName(), reconcile.HubRights)
}

// Refused records that the API server refused a request, and schedules the next attempt. Another generation of the
// reconciled object makes another request.
func (w *Writer) Refused(again *reconcile.Requeue, request string, reconciled client.Object) {
	again.In(w.Refusals.Record(refusalKey(request, reconciled)))
}

// Accepted records that the API server accepted a request: the delay after the next refusal is the shortest one.
func (w *Writer) Accepted(request string, reconciled client.Object) {
	w.Refusals.Reset(refusalKey(request, reconciled))
}

func refusalKey(request string, reconciled client.Object) string {
	return fmt.Sprintf("%s %s %d", reconcile.Key(request, reconciled), reconciled.GetUID(), reconciled.GetGeneration())
}
