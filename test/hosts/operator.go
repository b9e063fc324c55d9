package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

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

// concurrentHosts is how many BareMetalHosts the operator works on at a time.
const concurrentHosts = 16

// operator is the Bare Metal Operator: it takes each BareMetalHost one provisioning state further in each reconcile.
type operator struct {
	rack *Rack

	mu      sync.Mutex
	entered map[types.NamespacedName]stay
}

// stay tells since when a BareMetalHost is in a state.
type stay struct {
	state metal3api.ProvisioningState
	since time.Time
}

func newOperator(rack *Rack) *operator {
	return &operator{rack: rack, entered: map[types.NamespacedName]stay{}}
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

// hostsOfSecret finds the BareMetalHosts that wait for a secret, as credentials or as user data.
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

// Reconcile takes a BareMetalHost one step further and writes its status; the write brings it back here.
func (o *operator) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	bmh := &metal3api.BareMetalHost{}
	if err := o.rack.client.Get(ctx, request.NamespacedName, bmh); err != nil {
		if apierrors.IsNotFound(err) {
			// The host stays as the deletion left it: off, or running where it was detached, or moved to another hub.
			o.forget(request.NamespacedName)
		}
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
	if err := o.administer(ctx, bmh, host); err != nil {
		return reconcile.Result{}, ignoreStale(err)
	}
	if bmh.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(bmh, metal3api.BareMetalHostFinalizer) {
		return reconcile.Result{}, nil
	}
	if wait := o.remainingStay(bmh); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	before := bmh.Status.DeepCopy()
	if err := o.step(ctx, bmh, host); err != nil {
		return reconcile.Result{}, ignoreStale(err)
	}
	if equality.Semantic.DeepEqual(before, &bmh.Status) {
		return reconcile.Result{}, nil
	}
	now := metav1.Now()
	bmh.Status.LastUpdated = &now
	if err := o.rack.client.Status().Update(ctx, bmh); err != nil {
		return reconcile.Result{}, ignoreStale(fmt.Errorf("cannot write the status: %w", err))
	}
	return reconcile.Result{}, nil
}

// ignoreStale drops the errors of a write that was based on an outdated BareMetalHost: the newer one is on its way here.
func ignoreStale(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// restore takes the status of a BareMetalHost that has none, because it was moved here, from the annotation in which CAPM3 keeps it meanwhile. The annotation goes once there is a status.
func (o *operator) restore(ctx context.Context, bmh *metal3api.BareMetalHost) (restored bool, err error) {
	kept, found := bmh.Annotations[metal3api.StatusAnnotation]
	if !found {
		return false, nil
	}
	if bmh.Status.Provisioning.State == metal3api.StateNone {
		if err := json.Unmarshal([]byte(kept), &bmh.Status); err != nil {
			return false, fmt.Errorf("cannot read the status that was kept: %w", err)
		}
		if err := o.rack.client.Status().Update(ctx, bmh); err != nil {
			return false, fmt.Errorf("cannot restore the status: %w", err)
		}
		return true, nil
	}
	before := client.MergeFrom(bmh.DeepCopy())
	delete(bmh.Annotations, metal3api.StatusAnnotation)
	if err := o.rack.client.Patch(ctx, bmh, before); err != nil {
		return false, fmt.Errorf("cannot drop the status that was kept: %w", err)
	}
	return true, nil
}

// administer keeps the finalizer and carries out a reboot that an annotation asks for.
func (o *operator) administer(ctx context.Context, bmh *metal3api.BareMetalHost, host *Host) error {
	original := bmh.DeepCopy()
	if bmh.DeletionTimestamp == nil {
		controllerutil.AddFinalizer(bmh, metal3api.BareMetalHostFinalizer)
	} else if bmh.Status.Provisioning.State == metal3api.StateDeleting {
		controllerutil.RemoveFinalizer(bmh, metal3api.BareMetalHostFinalizer)
	}
	if _, once := bmh.Annotations[metal3api.RebootAnnotationPrefix]; once {
		delete(bmh.Annotations, metal3api.RebootAnnotationPrefix)
		if host.PoweredOn() {
			host.Reboot()
		}
	}
	if equality.Semantic.DeepEqual(original, bmh) {
		return nil
	}
	patch := client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{})
	if err := o.rack.client.Patch(ctx, bmh, patch); err != nil {
		return fmt.Errorf("cannot update the BareMetalHost: %w", err)
	}
	return nil
}

// remainingStay returns how much longer a BareMetalHost stays in its state.
func (o *operator) remainingStay(bmh *metal3api.BareMetalHost) time.Duration {
	lasting := []metal3api.ProvisioningState{
		metal3api.StateInspecting, metal3api.StatePreparing, metal3api.StateProvisioning, metal3api.StateDeprovisioning,
	}
	state, delay := bmh.Status.Provisioning.State, o.rack.options.StateDelay
	if delay <= 0 || !slices.Contains(lasting, state) {
		return 0
	}
	key := client.ObjectKeyFromObject(bmh)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.entered[key].state != state {
		o.entered[key] = stay{state: state, since: time.Now()}
	}
	return delay - time.Since(o.entered[key].since)
}

func (o *operator) forget(key types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entered, key)
}

// wantsPower is true unless the BareMetalHost is to be off, or held off by a reboot that somebody asked for and has not ended.
func wantsPower(bmh *metal3api.BareMetalHost) bool {
	held := slices.ContainsFunc(slices.Collect(maps.Keys(bmh.Annotations)), func(key string) bool {
		return strings.HasPrefix(key, metal3api.RebootAnnotationPrefix+"/")
	})
	return bmh.Spec.Online && !held
}

// userDataKey names the secret with the user data of a BareMetalHost.
func userDataKey(bmh *metal3api.BareMetalHost) types.NamespacedName {
	key := types.NamespacedName{Namespace: bmh.Spec.UserData.Namespace, Name: bmh.Spec.UserData.Name}
	if key.Namespace == "" {
		key.Namespace = bmh.Namespace
	}
	return key
}
