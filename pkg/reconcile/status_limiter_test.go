package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"
)

func TestDeferrableDelayCountsFromFirstChange(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	limiter := NewStatusLimiter[string](clock)
	g.Expect(limiter.DeferrableDelay("a")).To(Equal(DeferralPeriod))
	clock.Step(DeferralPeriod / 2)
	g.Expect(limiter.DeferrableDelay("a")).To(Equal(DeferralPeriod/2), "further changes do not restart the period")
	g.Expect(limiter.DeferrableDelay("b")).To(Equal(DeferralPeriod))
	clock.Step(DeferralPeriod / 2)
	g.Expect(limiter.DeferrableDelay("a")).To(BeZero())

	limiter.Reset("a")
	g.Expect(limiter.DeferrableDelay("a")).To(Equal(DeferralPeriod), "the next change starts a new period")
}

// A status may change with each write: two processes that both consider themselves the leader overwrite the
// status of each other.
func TestUrgentWritesAreRateLimited(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	limiter := NewStatusLimiter[string](clock)
	written := 0
	for began := clock.Now(); clock.Since(began) < time.Minute; {
		left := limiter.UrgentDelay("a")
		if left == 0 {
			written++
			left = 10 * time.Millisecond
		}
		clock.Step(left)
	}
	g.Expect(written).To(BeNumerically("~", urgentBurst+int(time.Minute/urgentInterval), 1))
	g.Expect(limiter.UrgentDelay("a")).To(BeNumerically(">", 0))
	g.Expect(limiter.UrgentDelay("b")).To(BeZero(), "another object")
	clock.Step(urgentBurst * urgentInterval)
	for range urgentBurst {
		g.Expect(limiter.UrgentDelay("a")).To(BeZero(), "the burst is available again after a pause")
	}
	g.Expect(limiter.UrgentDelay("a")).To(Equal(urgentInterval))
	g.Expect(limiter.UrgentDelay("a")).To(Equal(urgentInterval), "a delayed write is not counted")
}
