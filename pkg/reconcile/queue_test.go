package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestQueueLimitsRetries(t *testing.T) {
	g := NewWithT(t)
	q := NewQueue(t.Name(), workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Hour, time.Hour))
	t.Cleanup(q.ShutDown)
	q.AddRateLimited(ctrl.Request{})
	g.Expect(q.NumRequeues(ctrl.Request{})).To(Equal(1))
	g.Consistently(q.Len, 100*time.Millisecond).Should(BeZero())
}

func TestLowPriorityRequestsFitAnyQueue(t *testing.T) {
	g := NewWithT(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(q.ShutDown)
	AddLowPriority(q, ctrl.Request{})
	g.Expect(q.Len()).To(Equal(1))
}
