package reconcile

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestRefusedOwnerReferencesAreRetriedWithBackoff(t *testing.T) {
	g := NewWithT(t)
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	owners := NewOwners(NewRefusals(clock))
	found := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m", UID: "1"}}
	granted, attempts := false, 0
	write := func(wanted *corev1.Secret) func() error {
		return func() error {
			attempts++
			if len(wanted.OwnerReferences) > 0 && !granted {
				return apierrors.NewForbidden(
					schema.GroupResource{Resource: "secrets"},
					"m",
					errors.New("cannot set an ownerRef on a resource you can't delete: , <nil>"),
				)
			}
			return nil
		}
	}
	wanted := func() *corev1.Secret {
		s := found.DeepCopy()
		s.OwnerReferences = []metav1.OwnerReference{{Kind: "OpenshiftAssistedConfig", Name: "m", UID: "config"}}
		return s
	}
	attempt := func() time.Duration {
		w := wanted()
		attempts = 0
		refused, err := owners.Write(w, found, write(w))
		g.Expect(err).NotTo(HaveOccurred())
		return refused
	}

	g.Expect(attempt()).To(Equal(time.Minute))
	g.Expect(attempts).To(Equal(2), "all other fields are written")
	g.Expect(attempt()).To(Equal(time.Minute))
	g.Expect(attempts).To(Equal(1), "the owner references are not retried at once")
	clock.Step(time.Minute)
	g.Expect(attempt()).To(Equal(2 * time.Minute))
	granted = true
	clock.Step(2 * time.Minute)
	g.Expect(attempt()).To(BeZero())
	g.Expect(owners.Left(found)).To(BeZero())

	w := wanted()
	refused, err := owners.Write(w, nil, func() error { return errors.New("no connection") })
	g.Expect(refused).To(BeZero())
	g.Expect(err).To(MatchError("no connection"))
	_, err = owners.Write(w, found, func() error { return errors.New("no connection") })
	g.Expect(err).To(MatchError("no connection"), "no other error is retried")
}

// passingClock is a clock whose time passes with each reading.
type passingClock struct {
	now  time.Time
	step time.Duration
}

func (c *passingClock) Now() time.Time {
	now := c.now
	c.now = now.Add(c.step)
	return now
}

func (c *passingClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Otherwise no condition reports the refusal, and no reconcile is scheduled.
func TestOmittedOwnerReferencesAreReportedAtTheEndOfTheDelay(t *testing.T) {
	g := NewWithT(t)
	clock := &passingClock{now: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	owners := NewOwners(NewRefusals(clock))
	found := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "m", UID: "1"}}
	wanted := found.DeepCopy()
	wanted.OwnerReferences = []metav1.OwnerReference{{Kind: "OpenshiftAssistedConfig", Name: "m", UID: "config"}}
	owners.refusals.Record(ownersKey(found))
	clock.now, clock.step = clock.now.Add(RefusedDelay-time.Second), time.Second
	refused, err := owners.Write(wanted, found, func() error { return nil })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(wanted.OwnerReferences).To(BeEmpty())
	g.Expect(refused).To(BeNumerically(">", 0))
}
