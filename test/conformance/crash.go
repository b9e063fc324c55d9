package conformance

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// crashRules install and delete clusters with managers that die after each of their writes: the one that was answered last is the last of
// its life, whichever it is. Every write point of an installation and a deletion is met in one run that way. I14 does so with a move.
func (s *suite) crashRules() {
	s.rule("I7", "every write point is survived", invariant, func(ctx SpecContext) {
		s.expectSurvived(ctx, ClusterOptions{Sample: Small, Namespace: "crash"}, func(*fixture) {})
	}, NodeTimeout(2*installTimeout+2*deleteTimeout))

	if !s.Long {
		s.without("I15", longCrash, invariant, "takes long: it is left to make nightly")
		return
	}
	s.rule("I15", longCrash, invariant, func(ctx SpecContext) {
		s.expectSurvived(ctx, ClusterOptions{Sample: Full, Namespace: "crash-full", Replaceable: true}, func(mortal *fixture) {
			_, workers := s.machines(ctx, mortal)
			s.scaleWorkers(ctx, mortal, len(workers)+1)
			s.expectOnce(ctx, mortal)
			made := map[kind]int{}
			for _, k := range s.made() {
				made[k] = len(mortal.everMade(k))
			}
			s.scaleWorkers(ctx, mortal, len(workers))
			for _, k := range s.made() {
				Expect(mortal.everMade(k)).To(HaveLen(made[k]), "no %s is made for what goes", k.Kind)
			}
		})
	}, NodeTimeout(4*installTimeout+2*deleteTimeout))
}

const longCrash = "every write point is survived, with several control-plane Machines, and workers that come and go"

// expectSurvived installs a cluster with managers that die after each of their writes, does something with it, and deletes it.
func (s *suite) expectSurvived(ctx context.Context, options ClusterOptions, while func(*fixture)) {
	GinkgoHelper()
	stop := s.hub.Crash(options.Namespace)
	if stop == nil {
		s.skip("this hub cannot make managers die")
	}
	defer stop()
	mortal := s.apply(ctx, options)
	s.await(ctx, mortal)
	s.settled(ctx, options.Namespace)
	s.expectOnce(ctx, mortal)
	for _, k := range s.made() {
		s.note("%s: %d", k.Kind, len(s.list(ctx, k, options.Namespace)))
	}
	while(mortal)
	s.expectDeleted(ctx, mortal)
	died := stop()
	Expect(died).To(BeNumerically(">", 10))
	s.note("the managers died %d times", died)
}

// expectOnce expects of an installed cluster that nothing was ever made for it but what is there.
func (s *suite) expectOnce(ctx context.Context, f *fixture) {
	GinkgoHelper()
	machines, workers := s.machines(ctx, f)
	Expect(machines).To(HaveLen(int(at(s.controlPlane(ctx, f), "spec", "replicas").(int64))))
	for _, m := range append(machines, workers...) {
		Expect(m.Status.NodeRef.IsDefined()).To(BeTrue(), m.Name)
	}
	for _, k := range s.made() {
		Expect(f.everMade(k)).To(HaveLen(len(s.list(ctx, k, f.namespace))), "each %s that ever was is there", k.Kind)
	}
}

// scaleWorkers waits until a cluster has so many workers, and all of them are ready.
func (s *suite) scaleWorkers(ctx context.Context, f *fixture, replicas int) {
	GinkgoHelper()
	deployments := s.list(ctx, deploymentKind, f.namespace)
	Expect(deployments).To(HaveLen(1))
	s.patch(ctx, &deployments[0], `{"spec":{"replicas":%d}}`, replicas)
	Eventually(func(g Gomega) {
		_, workers := s.machines(ctx, f)
		g.Expect(workers).To(HaveLen(replicas))
		for _, m := range workers {
			g.Expect(find(m.Status.Conditions, clusterv1.MachineReadyCondition).Status).To(Equal(metav1.ConditionTrue), m.Name)
		}
	}).WithContext(ctx).WithTimeout(installTimeout).Should(Succeed())
	s.settled(ctx, f.namespace)
}
