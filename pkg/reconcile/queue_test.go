package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestLowPriorityRequestsFitAnyQueue(t *testing.T) {
	g := NewWithT(t)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(q.ShutDown)
	AddLowPriority(q, ctrl.Request{})
	g.Expect(q.Len()).To(Equal(1))
}
