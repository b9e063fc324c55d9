package conformance

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// quiet is a world in which nothing happens any more.
type quiet struct {
	since    time.Time
	versions map[string]string
}

// becomeQuiet notes down an installed world that is left alone from now on.
func (s *suite) becomeQuiet(ctx SpecContext) {
	s.await(ctx, s.fixtures.full)
	s.await(ctx, s.fixtures.small)
	s.quiet = quiet{versions: s.settled(ctx, "full", "small"), since: time.Now().Add(-held)}
}

// idleRules look at what was left alone while other rules were tested. Managers that died meanwhile have read it again.
func (s *suite) idleRules() {
	s.rule("I5", "no write in two idle minutes", invariant, func(ctx SpecContext) {
		if s.quiet.since.IsZero() {
			s.becomeQuiet(ctx)
		}
		Eventually(func() time.Duration { return time.Since(s.quiet.since) }).WithTimeout(idle +
			soon).WithPolling(idle / 100).Should(BeNumerically(">=", idle))
		Expect(s.versions(ctx, "full", "small")).To(Equal(s.quiet.versions))
		for _, namespace := range []string{"full", "small"} {
			Expect(s.hub.Writes(namespace, time.Time{})).NotTo(BeEmpty(), "it is told what was written before")
			Expect(s.hub.Writes(namespace, s.quiet.since.Add(held))).To(BeEmpty(), "writes in %s, though they change nothing", namespace)
		}
	}, NodeTimeout(2*idle+2*soon))
	s.rule("I6", "no reconcile panics", invariant, func(ctx SpecContext) {
		Expect(s.hub.Panics(ctx)).To(BeZero())
	})
}
