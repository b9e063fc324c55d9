package controlplane

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// retries is the rate limiter of the controller. The delay grows with the number of failures. It does not exceed the delay
// that the successful phases requested, because they poll state that cannot be watched.
type retries struct {
	workqueue.TypedRateLimiter[ctrl.Request]

	// wanted holds the delays that the successful phases of failed requests requested.
	wanted *lru.Cache[ctrl.Request, time.Duration]
}

func newRetries() *retries {
	return &retries{workqueue.DefaultTypedControllerRateLimiter[ctrl.Request](), lru.New[ctrl.Request, time.Duration](rememberedClusters)}
}

// want records the delay that the successful phases of a failed request requested; zero: none. The recorded delay has a
// minimum, so that failures are slowed down.
func (r *retries) want(req ctrl.Request, after time.Duration) {
	if after <= 0 {
		r.wanted.Remove(req)
		return
	}
	r.wanted.Add(req, max(after, etcdgate.InitialDelay))
}

// When returns the delay of the next attempt.
func (r *retries) When(req ctrl.Request) time.Duration {
	after := r.TypedRateLimiter.When(req)
	if wanted, found := r.wanted.Get(req); found {
		r.wanted.Remove(req)
		return min(after, wanted)
	}
	return after
}
