package conformance

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// crashRules install a cluster with managers that die after each of their writes: the one that was answered last is the last of
// its life, whichever it is. Every write point of an installation is met in one run that way.
func (s *suite) crashRules() {
	s.rule("I7", "every write point is survived", invariant, func(ctx SpecContext) {
		stop := s.hub.Crash("crash")
		if stop == nil {
			s.skip("this hub cannot make managers die")
		}
		DeferCleanup(func() { stop() })
		mortal := s.apply(ctx, ClusterOptions{Sample: Small, Namespace: "crash"})
		s.await(ctx, mortal)
		s.settled(ctx, "crash")
		died := stop()
		Expect(died).To(BeNumerically(">", 10))
		s.note("the managers died %d times", died)

		machines, workers := s.machines(ctx, mortal)
		controlPlane := s.controlPlane(ctx, mortal)
		Expect(machines).To(HaveLen(int(at(controlPlane, "spec", "replicas").(int64))))
		for _, m := range append(machines, workers...) {
			Expect(m.Status.NodeRef.IsDefined()).To(BeTrue(), m.Name)
		}
		Expect(mortal.everMade(machineKind)).To(HaveLen(len(machines)+len(workers)), "Machines that ever were")
		for _, k := range s.Kinds {
			s.note("%s: %d", k.Kind, len(s.list(ctx, k, "crash")))
		}
		s.expectDeleted(ctx, mortal)
	}, NodeTimeout(2*installTimeout+deleteTimeout))
}
