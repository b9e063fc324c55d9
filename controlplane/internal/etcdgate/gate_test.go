package etcdgate

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

func TestTurnsAreSpread(t *testing.T) {
	g := NewWithT(t)
	gate := New(nil, clock.RealClock{})
	for deferrable, shortest := range map[bool]time.Duration{true: DeferrableTurn, false: Interval} {
		turns := sets.New[time.Duration]()
		for range 100 {
			turn := gate.turn(deferrable)
			g.Expect(turn).To(And(BeNumerically(">=", shortest), BeNumerically("<=", 2*shortest)))
			turns.Insert(turn)
		}
		g.Expect(turns.Len()).To(BeNumerically(">", 1))
	}
}
