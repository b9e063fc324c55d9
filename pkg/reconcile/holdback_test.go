package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestHoldBack(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	held := NewHoldBack(func() time.Time { return now })
	g.Expect(held.Left("a")).To(Equal(HeldBack))
	now = now.Add(HeldBack / 2)
	g.Expect(held.Left("a")).To(Equal(HeldBack/2), "from the first difference on, whatever came since")
	g.Expect(held.Left("b")).To(Equal(HeldBack))
	now = now.Add(HeldBack / 2)
	g.Expect(held.Left("a")).To(BeZero())

	held.Written("a")
	g.Expect(held.Left("a")).To(Equal(HeldBack), "the next difference")
}
