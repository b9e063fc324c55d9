package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// concurrentHosts is the number of concurrent reconciles of BareMetalHosts.
const concurrentHosts = 16

// operator is the Bare Metal Operator: each reconcile moves a BareMetalHost to its next provisioning state.
type operator struct {
	rack *Rack
}

func newOperator(rack *Rack) *operator {
	return &operator{rack: rack}
}

func (o *operator) setUp(manager ctrl.Manager) error {
	anyName := true
	return ctrl.NewControllerManagedBy(manager).
		Named("baremetalhost").
		For(&metal3api.BareMetalHost{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(o.hostsOfSecret)).
		WatchesRawSource(source.TypedChannel(o.rack.pokes, &handler.TypedEnqueueRequestForObject[*metal3api.BareMetalHost]{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrentHosts,
			// Several racks may run in one process.
			SkipNameValidation: &anyName,
			RateLimiter:        workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(o)
}

// hostsOfSecret returns the BareMetalHosts that use a Secret, as credentials or as user data.
func (o *operator) hostsOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	list := &metal3api.BareMetalHostList{}
	if err := o.rack.client.List(ctx, list); err != nil {
		o.rack.log.Error(err, "cannot list BareMetalHosts")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		bmh := &list.Items[i]
		key := client.ObjectKeyFromObject(secret)
		if bmh.CredentialsKey() == key || bmh.Spec.UserData != nil && userDataKey(bmh) == key {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bmh)})
		}
	}
	return requests
}

// Reconcile moves a BareMetalHost to its next state and writes its status; the write triggers the next
// reconcile.
func (o *operator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bmh := &metal3api.BareMetalHost{}
	if err := o.rack.client.Get(ctx, request.NamespacedName, bmh); err != nil {
		// The host of a deleted BareMetalHost stays in its last state: off, running if it was detached, or moved
		// to another hub.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if _, paused := bmh.Annotations[metal3api.PausedAnnotation]; paused {
		return reconcile.Result{}, nil
	}
	if restored, err := o.restore(ctx, bmh); restored || err != nil {
		return reconcile.Result{}, ignoreStale(err)
	}
	host, err := o.rack.hostOf(bmh)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot build the host: %w", err)
	}
	if taken, err := o.takeDetails(ctx, bmh); taken || err != nil {
		return reconcile.Result{}, ignoreStale(err)
	}
	if err := o.administer(ctx, bmh, host); err != nil {
		return reconcile.Result{}, ignoreStale(err)
	}
	if bmh.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(bmh, metal3api.BareMetalHostFinalizer) {
		return reconcile.Result{}, nil
	}
	task := taskOf(bmh, host)
	if wait := host.remaining(task); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	before := bmh.Status.DeepCopy()
	if reason := host.failure(task); reason != "" {
		failed(&bmh.Status, task, reason)
		skipDeprovisioning(bmh)
		return reconcile.Result{RequeueAfter: taskRetry}, o.write(ctx, bmh)
	}
	if err := o.step(ctx, bmh, host); err != nil {
		return reconcile.Result{}, ignoreStale(err)
	}
	host.finish(task)
	if equality.Semantic.DeepEqual(before, &bmh.Status) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{}, o.write(ctx, bmh)
}

// write writes the status.
func (o *operator) write(ctx context.Context, bmh *metal3api.BareMetalHost) error {
	now := metav1.Now()
	bmh.Status.LastUpdated = &now
	if err := o.rack.client.Status().Update(ctx, bmh); err != nil {
		return ignoreStale(fmt.Errorf("cannot write the status: %w", err))
	}
	return nil
}

// ignoreStale ignores the errors of a write that was based on an outdated BareMetalHost: an event of the newer
// one will follow.
func ignoreStale(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// restore restores the status of a moved BareMetalHost from the annotation in which CAPM3 keeps it. The
// annotation is removed once a status exists.
func (o *operator) restore(ctx context.Context, bmh *metal3api.BareMetalHost) (restored bool, err error) {
	kept, found := bmh.Annotations[metal3api.StatusAnnotation]
	if !found {
		return false, nil
	}
	if bmh.Status.Provisioning.State == metal3api.StateNone {
		if err := json.Unmarshal([]byte(kept), &bmh.Status); err != nil {
			return false, fmt.Errorf("cannot read the annotated status: %w", err)
		}
		if err := o.rack.client.Status().Update(ctx, bmh); err != nil {
			return false, fmt.Errorf("cannot restore the status: %w", err)
		}
		return true, nil
	}
	before := client.MergeFrom(bmh.DeepCopy())
	delete(bmh.Annotations, metal3api.StatusAnnotation)
	if err := o.rack.client.Patch(ctx, bmh, before); err != nil {
		return false, fmt.Errorf("cannot remove the annotated status: %w", err)
	}
	return true, nil
}

// takeDetails reads the hardware from an annotation, at any time, if no inspection reported it or inspections
// are disabled. Then it removes the annotation.
func (o *operator) takeDetails(ctx context.Context, bmh *metal3api.BareMetalHost) (taken bool, err error) {
	details, err := annotatedDetails(bmh)
	if details == nil || err != nil {
		return false, err
	}
	wanted := bmh.Status.HardwareDetails == nil || bmh.InspectionDisabled()
	if wanted && !equality.Semantic.DeepEqual(bmh.Status.HardwareDetails, details) {
		bmh.Status.HardwareDetails = details
		if err := o.rack.client.Status().Update(ctx, bmh); err != nil {
			return false, fmt.Errorf("cannot write the hardware details: %w", err)
		}
		return true, nil
	}
	before := client.MergeFrom(bmh.DeepCopy())
	delete(bmh.Annotations, metal3api.HardwareDetailsAnnotation)
	if err := o.rack.client.Patch(ctx, bmh, before); err != nil {
		return false, fmt.Errorf("cannot remove the annotation with the hardware details: %w", err)
	}
	return true, nil
}

// administer maintains the finalizer and carries out a reboot that an annotation requests.
func (o *operator) administer(ctx context.Context, bmh *metal3api.BareMetalHost, host *Host) error {
	original := bmh.DeepCopy()
	if bmh.DeletionTimestamp == nil {
		controllerutil.AddFinalizer(bmh, metal3api.BareMetalHostFinalizer)
	} else if bmh.Status.Provisioning.State == metal3api.StateDeleting {
		controllerutil.RemoveFinalizer(bmh, metal3api.BareMetalHostFinalizer)
	}
	_, once := bmh.Annotations[metal3api.RebootAnnotationPrefix]
	delete(bmh.Annotations, metal3api.RebootAnnotationPrefix)
	if equality.Semantic.DeepEqual(original, bmh) {
		return nil
	}
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	if err := o.rack.client.Patch(ctx, bmh, patch); err != nil {
		return fmt.Errorf("cannot update the BareMetalHost: %w", err)
	}
	if once && host.PoweredOn() { // after the write: an outdated BareMetalHost would request another reboot
		host.Reboot()
	}
	return nil
}

// wantsPower reports whether the BareMetalHost is to be on: its spec requires it, and no requested reboot holds
// it off.
func wantsPower(bmh *metal3api.BareMetalHost) bool {
	poweredOff := slices.ContainsFunc(slices.Collect(maps.Keys(bmh.Annotations)), func(key string) bool {
		return strings.HasPrefix(key, metal3api.RebootAnnotationPrefix+"/")
	})
	return bmh.Spec.Online && !poweredOff
}

// userDataKey returns the key of the Secret with the user data of a BareMetalHost.
func userDataKey(bmh *metal3api.BareMetalHost) types.NamespacedName {
	key := types.NamespacedName{Namespace: bmh.Spec.UserData.Namespace, Name: bmh.Spec.UserData.Name}
	if key.Namespace == "" {
		key.Namespace = bmh.Namespace
	}
	return key
}
