package conformance

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// quiet is a state of the hub in which no object changes any more.
type quiet struct {
	since    time.Time
	versions map[string]string
}

// recordQuiet records the state of installed clusters that are not changed from now on.
func (s *suite) recordQuiet(ctx SpecContext) {
	s.await(ctx, s.fixtures.full)
	s.await(ctx, s.fixtures.small)
	s.quiet = quiet{versions: s.settled(ctx, "full", "small"), since: time.Now().Add(-held)}
}

// idleRules check the clusters that were not changed while other rules ran. Managers that crashed meanwhile have
// read them again.
func (s *suite) idleRules() {
	s.rule("I5", "no write in two idle minutes", invariant, func(ctx SpecContext) {
		if s.quiet.since.IsZero() {
			s.recordQuiet(ctx)
		}
		Eventually(func() time.Duration { return time.Since(s.quiet.since) }).WithTimeout(idle +
			soon).WithPolling(idle / 100).Should(BeNumerically(">=", idle))
		Expect(s.versions(ctx, "full", "small")).To(Equal(s.quiet.versions))
		for _, namespace := range []string{"full", "small"} {
			writes, err := s.hub.Writes(namespace, time.Time{})
			s.expectDone(err)
			Expect(writes).NotTo(BeEmpty(), "the hub records writes")
			Expect(s.hub.Writes(namespace, s.quiet.since.Add(held))).To(BeEmpty(), "writes in %s without a change", namespace)
		}
	}, NodeTimeout(2*idle+2*soon))
	s.rule("I6", "no reconcile panics", invariant, func(ctx SpecContext) {
		panics, err := s.hub.Panics(ctx)
		s.expectDone(err)
		Expect(panics).To(BeZero())
	})
}
