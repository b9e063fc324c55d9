package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSinceWhenItLasts(t *testing.T) {
	g := NewWithT(t)
	begin := time.Now()
	now := begin
	lasting := NewLasting(func() time.Time { return now })
	g.Expect(lasting.Since("a")).To(Equal(begin))
	now = begin.Add(time.Minute)
	g.Expect(lasting.Since("a")).To(Equal(begin), "it goes on")
	g.Expect(lasting.Since("b")).To(Equal(now))

	lasting.Ended("a")
	now = begin.Add(time.Hour)
	g.Expect(lasting.Since("a")).To(Equal(now), "it begins anew")
	g.Expect(lasting.Since("b")).To(Equal(begin.Add(time.Minute)))
}
