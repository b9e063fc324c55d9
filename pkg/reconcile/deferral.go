package reconcile

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// inARow is how many reports on an object follow one another as fast as things happen. A host has some 15 while it
	// is installed, a control plane 30.
	inARow = 20
	// pace is that of further ones.
	pace = 2 * time.Second
)

// DeferralPeriod is for how long a status may lack what nobody waits for. Most of it is over by then, and each report is a request.
const DeferralPeriod = 10 * time.Second

// Deferral counts for how long a status that differs from the facts has not been written.
type Deferral struct {
	now     func() time.Time
	differs *Lasting
	paces   *lru.Cache[any, *rate.Limiter]
}

// NewDeferral returns one that counts nothing yet.
func NewDeferral(now func() time.Time) *Deferral {
	return &Deferral{now: now, differs: NewLasting(now), paces: lru.New[any, *rate.Limiter](remembered)}
}

// Left is how much longer the status may wait to be written. The time counts from the first difference that was not
// written, so that one that changes all the time is still written.
func (h *Deferral) Left(key any) time.Duration {
	since := h.differs.Since(key)
	return max(0, DeferralPeriod-h.now().Sub(since))
}

// Urgent is how much longer even what somebody waits for has to wait, because so much was written right before; 0: it
// is written now, and counted. Two processes that both hold themselves for the leader, and see things differently,
// would else correct each other as fast as they can.
func (h *Deferral) Urgent(key any) time.Duration {
	limit, known := h.paces.Get(key)
	if !known {
		limit = rate.NewLimiter(rate.Every(pace), inARow)
		h.paces.Add(key, limit)
	}
	now := h.now()
	reserved := limit.ReserveN(now, 1)
	left := reserved.DelayFrom(now)
	if left > 0 {
		reserved.CancelAt(now) // it asks again
	}
	return left
}

// Written notes that the status is what it should be.
func (h *Deferral) Written(key any) { h.differs.Ended(key) }
