package reconcile

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Long is how far away a timer is of which nobody waits for the end. What comes back sooner goes on with what was begun.
const Long = 10 * time.Second

// queue puts what people wait for before what was only listed: controller-runtime's handlers give objects of an initial
// list, and of a resync, a low priority, and its controllers keep the priority when an object is to come back. Here
// what comes back after long has a low one, too.
type queue struct {
	priorityqueue.PriorityQueue[ctrl.Request]
}

// NewQueue returns the work queue of a controller.
func NewQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	return queue{priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })}
}

// AddWithOpts implements priorityqueue.PriorityQueue. An event that comes before the timer ends lifts the priority again.
func (q queue) AddWithOpts(o priorityqueue.AddOpts, requests ...ctrl.Request) {
	if o.After >= Long {
		o.Priority = ptr.To(handler.LowPriority)
	}
	q.PriorityQueue.AddWithOpts(o, requests...)
}

// AddLate adds requests to the queue of a controller, behind what people wait for.
func AddLate(q workqueue.TypedRateLimitingInterface[ctrl.Request], requests ...ctrl.Request) {
	if byPriority, ok := q.(priorityqueue.PriorityQueue[ctrl.Request]); ok {
		byPriority.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(handler.LowPriority)}, requests...)
		return
	}
	for _, request := range requests {
		q.Add(request)
	}
}
