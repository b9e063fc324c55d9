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

// queue puts urgent requests before deferrable ones. The handlers of controller-runtime give the objects of
// an initial list and of a resync a low priority. Its controllers keep the priority of a requeued object.
// This queue also gives a low priority to requests with a long delay.
type queue struct {
	priorityqueue.PriorityQueue[ctrl.Request]
}

// NewQueue returns the work queue of a controller.
func NewQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return queue{priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })}
}

// AddWithOpts implements priorityqueue.PriorityQueue. An event that arrives before the delay ends raises the
// priority again.
func (q queue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	if o.After >= LowPriorityDelay {
		o.Priority = ptr.To(handler.LowPriority)
	}
	q.PriorityQueue.AddWithOpts(o, requests...)
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
