package reconcile

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// LowPriorityDelay is the delay from which on a requeue has a low priority: no user waits for it. A shorter
// delay continues work in progress.
const LowPriorityDelay = 10 * time.Second

// ResultAfter returns the result that requeues an object after a delay; a delay of zero requests no requeue. After
// [LowPriorityDelay] or later, the object waits behind urgent ones, as the objects of an initial list and of a
// resync do. An event that arrives before the delay ends raises the priority again. A result without a priority
// keeps the current one.
func ResultAfter(delay time.Duration) ctrl.Result {
	result := ctrl.Result{RequeueAfter: delay}
	if delay >= LowPriorityDelay {
		result.Priority = ptr.To(handler.LowPriority)
	}
	return result
}

// AddLowPriority adds requests to the queue of a controller, behind urgent ones.
func AddLowPriority(q workqueue.TypedRateLimitingInterface[ctrl.Request], requests ...ctrl.Request) {
	if byPriority, ok := q.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		q.Add(request)
	}
}
