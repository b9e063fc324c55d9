package provider

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// worker is a controller with one worker. It records the order of requests, and blocks in the request named
// blocking.
type worker struct {
	queue   workqueue.TypedRateLimitingInterface[ctrl.Request]
	release chan struct{}
	order   []string
	seen    sets.Set[ctrl.Request]
}

const (
	blocking    = "blocking"
	failsFirst  = "listed, and failed"
	returnsSoon = "returns soon"
	returnsLate = "returns late"
	hangs       = "hangs"
)

func (d *worker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	first := !d.seen.Has(req)
	d.seen.Insert(req)
	d.order = append(d.order, req.Name)
	switch {
	case req.Name == blocking:
		<-d.release
	case req.Name == hangs && first:
		<-ctx.Done()
		return ctrl.Result{}, ctx.Err()
	case req.Name == failsFirst && first:
		return ctrl.Result{}, errors.New("for once")
	case req.Name == returnsSoon && first:
		return reconcile.ResultAfter(reconcile.LowPriorityDelay - time.Millisecond), nil
	case req.Name == returnsLate && first:
		return reconcile.ResultAfter(reconcile.LowPriorityDelay), nil
	}
	return ctrl.Result{}, nil
}

// startWorker starts the controller, with the options of the managers.
func startWorker(t *testing.T) *worker {
	t.Helper()
	d := &worker{release: make(chan struct{}), seen: sets.New[ctrl.Request]()}
	options := (&Options{Concurrency: 1}).ControllerOptions()
	options.Reconciler = d
	c, err := controller.NewUnmanaged(t.Name(), options)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		d.queue = q
		return nil
	}))).To(Succeed())
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		end()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})
	synctest.Wait()
	return d
}

func object(name, version string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
}

// mapped is the handler of nearly all watches of the managers.
var mapped = handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
})

func TestUrgentRequestsPrecedeListedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWorker(t), t.Context()
		list := func(name string, h handler.EventHandler) {
			h.Create(ctx, event.CreateEvent{Object: object(name, "1"), IsInInitialList: true}, d.queue)
		}
		change := func(name, from, to string, h handler.EventHandler) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: object(name, from), ObjectNew: object(name, to)}, d.queue)
		}
		for _, name := range []string{returnsLate, returnsSoon} {
			change(name, "1", "2", mapped)
			synctest.Wait()
		}
		list(failsFirst, mapped)
		synctest.Wait()
		change(blocking, "1", "2", mapped)
		synctest.Wait()

		list("listed", mapped)
		list("listed itself", &handler.EnqueueRequestForObject{})
		list("listed, then changed", mapped)
		change("resynced", "1", "1", mapped)
		change("changed", "1", "2", mapped)
		change("changed itself", "1", "2", &handler.EnqueueRequestForObject{})
		mapped.Create(ctx, event.CreateEvent{Object: object("created", "1")}, d.queue)
		mapped.Delete(ctx, event.DeleteEvent{Object: object("deleted", "1")}, d.queue)
		(&handler.EnqueueRequestForObject{}).Generic(ctx, event.GenericEvent{Object: object("generic", "")}, d.queue)
		reconcile.AddLowPriority(d.queue, ctrl.Request{NamespacedName: client.ObjectKey{Name: "late"}})
		change("listed, then changed", "1", "2", mapped)
		time.Sleep(reconcile.LowPriorityDelay) //nolint:forbidigo // time of the bubble: all timers end while the worker is blocked
		d.order = nil
		close(d.release)
		synctest.Wait()
		NewWithT(t).Expect(d.order).To(Equal([]string{
			"changed", "changed itself", "created", "deleted", "generic", "listed, then changed", returnsSoon,
			"listed", "listed itself", "resynced", "late", failsFirst, returnsLate,
		}))
	})
}

func TestHangingReconcileReleasesItsWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWorker(t), t.Context()
		for _, name := range []string{hangs, "other"} {
			mapped.Create(ctx, event.CreateEvent{Object: object(name, "1")}, d.queue)
			synctest.Wait()
		}
		NewWithT(t).Expect(d.order).To(Equal([]string{hangs}))
		time.Sleep(reconciliationTimeout + time.Second) //nolint:forbidigo // time of the bubble
		NewWithT(t).Expect(d.order).To(Equal([]string{hangs, "other", hangs}), "it is retried")
	})
}

func TestEventRaisesThePriorityOfADelayedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, ctx := startWorker(t), t.Context()
		change := func(name string) {
			mapped.Update(ctx, event.UpdateEvent{ObjectOld: object(name, "1"), ObjectNew: object(name, "2")}, d.queue)
		}
		change(returnsLate)
		synctest.Wait()
		change(blocking)
		synctest.Wait()
		reconcile.AddLowPriority(d.queue, ctrl.Request{NamespacedName: client.ObjectKey{Name: "late"}})
		change(returnsLate)
		d.order = nil
		close(d.release)
		synctest.Wait()
		NewWithT(t).Expect(d.order).To(Equal([]string{returnsLate, "late"}))
	})
}

// After an outage of the API server all requests have failed. A retry must not wait for the rate limit of
// other objects.
func TestManyFailuresAreRetriedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWorker(t)
		const objects = 500
		for i := range objects {
			d.queue.Add(ctrl.Request{NamespacedName: client.ObjectKey{Name: failsFirst, Namespace: strconv.Itoa(i)}})
		}
		time.Sleep(time.Second) //nolint:forbidigo // time of the bubble
		synctest.Wait()
		NewWithT(t).Expect(d.order).To(HaveLen(2 * objects))
	})
}
