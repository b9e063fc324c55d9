package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestStartTimeIsKeptUntilCleared(t *testing.T) {
	g := NewWithT(t)
	begin := time.Now()
	now := begin
	lasting := NewStartTimes(func() time.Time { return now })
	g.Expect(lasting.Since("a")).To(Equal(begin))
	now = begin.Add(time.Minute)
	g.Expect(lasting.Since("a")).To(Equal(begin), "the state lasts")
	g.Expect(lasting.Since("b")).To(Equal(now))

	lasting.Clear("a")
	now = begin.Add(time.Hour)
	g.Expect(lasting.Since("a")).To(Equal(now), "the state starts again")
	g.Expect(lasting.Since("b")).To(Equal(begin.Add(time.Minute)))
}
