package reconcile

import (
	"time"

	"k8s.io/utils/lru"
)

const (
	// HeldBack is for how long a status may lack what nobody waits for. Most of it is over by then, and each report is a request.
	HeldBack = 10 * time.Second
	// rememberedReports is far more than wait at one time; what is forgotten waits anew.
	rememberedReports = 8192
)

// HoldBack counts for how long a status that differs from the facts has not been written. It counts in memory: a restart begins anew.
type HoldBack struct {
	now   func() time.Time
	since *lru.Cache // key -> time.Time
}

// NewHoldBack returns one that counts nothing yet.
func NewHoldBack(now func() time.Time) *HoldBack {
	return &HoldBack{now: now, since: lru.New(rememberedReports)}
}

// Left is how much longer the status may wait to be written. The time counts from the first difference that was not written, so that one that changes all the time is
// still written.
func (h *HoldBack) Left(key any) time.Duration {
	now := h.now()
	since, waiting := h.since.Get(key)
	if !waiting {
		h.since.Add(key, now)
		return HeldBack
	}
	return max(0, HeldBack-now.Sub(since.(time.Time))) //nolint:forcetypeassert // nothing else is put in
}

// Written notes that the status is what it should be.
func (h *HoldBack) Written(key any) { h.since.Remove(key) }
