package controlplane

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// retries is when to come back after an error: the later, the more often it failed, but not later than what went well
// wants to go on. A chain that fails must not keep the others from looking at what cannot be watched.
type retries struct {
	workqueue.TypedRateLimiter[ctrl.Request]

	// wanted is after what time a request that failed wants to come back, by request.
	wanted *lru.Cache[ctrl.Request, time.Duration]
}

func newRetries() *retries {
	return &retries{workqueue.DefaultTypedControllerRateLimiter[ctrl.Request](), lru.New[ctrl.Request, time.Duration](rememberedClusters)}
}

// want notes after what time a request that failed wants to come back; zero: it does not. That is never at once, for
// then nothing would slow down what fails.
func (r *retries) want(req ctrl.Request, after time.Duration) {
	if after <= 0 {
		r.wanted.Remove(req)
		return
	}
	r.wanted.Add(req, max(after, etcdgate.InitialDelay))
}

// When is after what time to try again.
func (r *retries) When(req ctrl.Request) time.Duration {
	after := r.TypedRateLimiter.When(req)
	if wanted, found := r.wanted.Get(req); found {
		r.wanted.Remove(req)
		return min(after, wanted)
	}
	return after
}
