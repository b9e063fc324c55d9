package reconcile

import "time"

// HeldBack is for how long a status may lack what nobody waits for. Most of it is over by then, and each report is a request.
const HeldBack = 10 * time.Second

// HoldBack counts for how long a status that differs from the facts has not been written.
type HoldBack struct {
	now     func() time.Time
	differs *Lasting
}

// NewHoldBack returns one that counts nothing yet.
func NewHoldBack(now func() time.Time) *HoldBack {
	return &HoldBack{now: now, differs: NewLasting(now)}
}

// Left is how much longer the status may wait to be written. The time counts from the first difference that was not written, so that one that changes all the time is
// still written.
func (h *HoldBack) Left(key any) time.Duration {
	since := h.differs.Since(key)
	return max(0, HeldBack-h.now().Sub(since))
}

// Written notes that the status is what it should be.
func (h *HoldBack) Written(key any) { h.differs.Ended(key) }
