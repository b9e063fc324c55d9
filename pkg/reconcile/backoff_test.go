package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
)

func TestBackoffGrowsWithEachAttempt(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	backoff := NewBackoff(clock, 5*time.Minute, time.Hour)
	g.Expect(backoff.Left("a")).To(BeZero(), "the first attempt has no delay")
	for _, delay := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour} {
		g.Expect(backoff.Record("a")).To(Equal(delay))
		g.Expect(backoff.Left("a")).To(Equal(delay))
		g.Expect(backoff.Delay("a")).To(Equal(delay))
		g.Expect(backoff.Left("b")).To(BeZero())
		clock.Step(delay - time.Second)
		g.Expect(backoff.Left("a")).To(Equal(time.Second), "the rest of the delay")
		g.Expect(backoff.Record("a")).To(Equal(time.Second), "an attempt that an event caused does not prolong the delay")
		clock.Step(time.Second)
		g.Expect(backoff.Left("a")).To(BeZero())
	}
	clock.Step(3 * time.Hour)
	g.Expect(backoff.Delay("a")).To(BeZero(), "it does not count any more")
	g.Expect(backoff.Record("a")).To(Equal(5*time.Minute), "a much later attempt counts as the first")
	backoff.Reset("a")
	g.Expect(backoff.Left("a")).To(BeZero())
	g.Expect(backoff.Record("a")).To(Equal(5 * time.Minute))
}

// A recreated object has another UID, and the delay after its recreation must hold.
func TestKeyOutlivesTheObject(t *testing.T) {
	object := func(name, uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(uid)}}
	}
	g := NewWithT(t)
	recreations := NewRecreations(testingclock.NewFakeClock(time.Now()))
	interval := recreations.Record(Key("", object("a", "1")))
	g.Expect(interval).To(BeNumerically(">", 0))
	g.Expect(recreations.Left(Key("", object("a", "2")))).To(Equal(interval), "the replacement has another UID")
	g.Expect(recreations.Left(Key("", object("b", "1")))).To(BeZero())
}
