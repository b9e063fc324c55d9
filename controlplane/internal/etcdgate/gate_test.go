package etcdgate

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
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

func TestEventNeitherProlongsNorRestartsDelay(t *testing.T) {
	g := NewWithT(t)
	now := testingclock.NewFakeClock(time.Now())
	gate := New(nil, now)
	of, found := key{uid: "1", task: tasks.HostRelease}, result{reason: "R", message: "a member is down"}
	g.Expect(gate.record(of, found)).To(Equal(InitialDelay))
	now.Step(Interval)
	g.Expect(gate.record(of, found)).To(Equal(InitialDelay-Interval), "an event caused the inspection")
	now.Step(InitialDelay - Interval)
	g.Expect(gate.record(of, found)).To(Equal(2*InitialDelay), "the result is unchanged")
	g.Expect(gate.record(of, result{reason: "other"})).To(Equal(InitialDelay), "the result changed")
	g.Expect(gate.record(of, found)).To(Equal(InitialDelay), "and changed again")
}
