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

func TestRecreationsAreLimited(t *testing.T) {
	g := NewWithT(t)
	clock := testingclock.NewFakeClock(time.Now())
	recreations := NewRecreations(clock)
	object := func(name, uid string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(uid)}}
	}
	g.Expect(recreations.Delay(object("a", "1"))).To(BeZero(), "the first correction has no delay")
	for _, interval := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour} {
		recreations.Record(object("a", "1"))
		g.Expect(recreations.Delay(object("a", "2"))).To(Equal(interval), "the replacement has another UID")
		g.Expect(recreations.Delay(object("b", "1"))).To(BeZero())
		clock.Step(interval - time.Second)
		g.Expect(recreations.Delay(object("a", "2"))).To(Equal(time.Second), "the rest of the interval")
		clock.Step(time.Second)
		g.Expect(recreations.Delay(object("a", "2"))).To(BeZero())
	}
	clock.Step(3 * time.Hour)
	recreations.Record(object("a", "1"))
	g.Expect(recreations.Delay(object("a", "2"))).To(Equal(minRecreationInterval), "a later change is a correction again")
}
