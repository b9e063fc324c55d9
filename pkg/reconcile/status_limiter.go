package reconcile

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// urgentBurst is the number of urgent writes of one status without a delay. The installation of a host
	// takes about 15, that of a control plane 30.
	urgentBurst = 20
	// urgentInterval is the interval of further urgent writes.
	urgentInterval = 2 * time.Second
)

// DeferralPeriod is the longest time for which a deferrable change of a status is not written. Most such
// changes are reverted or replaced by then, and each write is one request.
const DeferralPeriod = 10 * time.Second

// StatusLimiter limits how often the status of each object is written.
type StatusLimiter[K comparable] struct {
	clock        clock.PassiveClock
	differsSince *StartTimes[K]
	limiters     *lru.Cache[K, *rate.Limiter]
}

// NewStatusLimiter returns a limiter without earlier writes.
func NewStatusLimiter[K comparable](c clock.PassiveClock) *StatusLimiter[K] {
	return &StatusLimiter[K]{clock: c, differsSince: NewStartTimes[K](c), limiters: lru.New[K, *rate.Limiter](maxStartTimes)}
}

// DeferrableDelay returns how much longer a deferrable change of a status may stay unwritten. The period
// starts with the first unwritten change, so that a status that changes all the time is still written.
func (h *StatusLimiter[K]) DeferrableDelay(key K) time.Duration {
	since := h.differsSince.Since(key)
	return max(0, DeferralPeriod-h.clock.Now().Sub(since))
}

// UrgentDelay returns how long an urgent change of a status has to wait because of earlier writes. A result
// of zero counts as a write. The limit slows down two processes that both consider themselves the leader and
// keep overwriting the status of each other.
func (h *StatusLimiter[K]) UrgentDelay(key K) time.Duration {
	limit, known := h.limiters.Get(key)
	if !known {
		limit = rate.NewLimiter(rate.Every(urgentInterval), urgentBurst)
		h.limiters.Add(key, limit)
	}
	now := h.clock.Now()
	reserved := limit.ReserveN(now, 1)
	left := reserved.DelayFrom(now)
	if left > 0 {
		reserved.CancelAt(now) // the caller calls again after the delay
	}
	return left
}

// Reset records that the stored status matches the facts.
func (h *StatusLimiter[K]) Reset(key K) { h.differsSince.Clear(key) }
