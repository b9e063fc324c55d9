package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestHoldBack(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	held := NewDeferral(func() time.Time { return now })
	g.Expect(held.Left("a")).To(Equal(DeferralPeriod))
	now = now.Add(DeferralPeriod / 2)
	g.Expect(held.Left("a")).To(Equal(DeferralPeriod/2), "from the first difference on, whatever came since")
	g.Expect(held.Left("b")).To(Equal(DeferralPeriod))
	now = now.Add(DeferralPeriod / 2)
	g.Expect(held.Left("a")).To(BeZero())

	held.Written("a")
	g.Expect(held.Left("a")).To(Equal(DeferralPeriod), "the next difference")
}

// TestReportsInAHurryAreNotEndless is a status that changes each time it is written, as where two processes correct each other.
func TestReportsInAHurryAreNotEndless(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	held := NewDeferral(func() time.Time { return now })
	written := 0
	for began := now; now.Sub(began) < time.Minute; {
		left := held.Urgent("a")
		if left == 0 {
			written++
			left = 10 * time.Millisecond
		}
		now = now.Add(left)
	}
	g.Expect(written).To(BeNumerically("~", inARow+int(time.Minute/pace), 1))
	g.Expect(held.Urgent("a")).To(BeNumerically(">", 0))
	g.Expect(held.Urgent("b")).To(BeZero(), "another object")
	now = now.Add(inARow * pace)
	for range inARow {
		g.Expect(held.Urgent("a")).To(BeZero(), "after a rest all is written as it comes")
	}
	g.Expect(held.Urgent("a")).To(Equal(pace))
	g.Expect(held.Urgent("a")).To(Equal(pace), "who only asked is not counted")
}
