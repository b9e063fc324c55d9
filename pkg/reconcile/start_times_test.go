package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"
)

func TestStartTimeIsKeptUntilCleared(t *testing.T) {
	g := NewWithT(t)
	begin := time.Now()
	clock := testingclock.NewFakeClock(begin)
	lasting := NewStartTimes[string](clock)
	g.Expect(lasting.Since("a")).To(Equal(begin))
	clock.SetTime(begin.Add(time.Minute))
	g.Expect(lasting.Since("a")).To(Equal(begin), "the state lasts")
	g.Expect(lasting.Since("b")).To(Equal(clock.Now()))

	lasting.Clear("a")
	clock.SetTime(begin.Add(time.Hour))
	g.Expect(lasting.Since("a")).To(Equal(clock.Now()), "the state starts again")
	g.Expect(lasting.Since("b")).To(Equal(begin.Add(time.Minute)))
}
