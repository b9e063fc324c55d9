package conformance

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// crashRules install and delete clusters with managers that crash after each of their writes: a manager stops
// once one of its writes was answered. So one run covers every write of an installation and a deletion. I14 does
// the same with a move.
func (s *suite) crashRules() {
	s.rule("I7", "every write point is survived", invariant, func(ctx SpecContext) {
		s.expectSurvived(ctx, ClusterOptions{Sample: Small, Namespace: "crash"}, func(*fixture) {})
	}, NodeTimeout(2*installTimeout+2*deleteTimeout))

	if !s.Long {
		s.exclude("I15", longCrash, invariant, "runs in make nightly only, because of its duration")
		return
	}
	s.rule("I15", longCrash, invariant, func(ctx SpecContext) {
		s.expectSurvived(ctx, ClusterOptions{Sample: Full, Namespace: "crash-full", Replaceable: true}, func(f *fixture) {
			_, workers := s.machines(ctx, f)
			s.scaleWorkers(ctx, f, len(workers)+1)
			s.expectNoExtraObjects(ctx, f)
			created := map[kind]int{}
			for _, k := range s.createdKinds() {
				created[k] = len(f.everCreated(k))
			}
			s.scaleWorkers(ctx, f, len(workers))
			for _, k := range s.createdKinds() {
				Expect(f.everCreated(k)).To(HaveLen(created[k]), "no %s is created for a deletion", k.Kind)
			}
		})
	}, NodeTimeout(4*installTimeout+2*deleteTimeout))
}

const longCrash = "every write point is survived, with several control-plane Machines, and workers that are added and removed"

// expectSurvived installs a cluster with managers that crash after each of their writes, runs while, and deletes
// the cluster.
func (s *suite) expectSurvived(ctx context.Context, options ClusterOptions, while func(*fixture)) {
	GinkgoHelper()
	stop := s.hub.Crash(options.Namespace)
	if stop == nil {
		s.skip("this hub cannot crash managers")
	}
	defer stop()
	f := s.apply(ctx, options)
	s.await(ctx, f)
	s.settled(ctx, options.Namespace)
	s.expectNoExtraObjects(ctx, f)
	for _, k := range s.createdKinds() {
		s.addNote("%s: %d", k.Kind, len(s.list(ctx, k, options.Namespace)))
	}
	while(f)
	s.expectDeleted(ctx, f)
	died := stop()
	Expect(died).To(BeNumerically(">", 10))
	s.addNote("the managers crashed %d times", died)
}

// expectNoExtraObjects expects that no object was created for an installed cluster other than those that exist.
func (s *suite) expectNoExtraObjects(ctx context.Context, f *fixture) {
	GinkgoHelper()
	machines, workers := s.machines(ctx, f)
	Expect(machines).To(HaveLen(int(at(s.controlPlane(ctx, f), "spec", "replicas").(int64))))
	for _, m := range append(machines, workers...) {
		Expect(m.Status.NodeRef.IsDefined()).To(BeTrue(), m.Name)
	}
	for _, k := range s.createdKinds() {
		Expect(f.everCreated(k)).To(HaveLen(len(s.list(ctx, k, f.namespace))), "each %s that was ever created exists", k.Kind)
	}
}

// scaleWorkers scales the workers of a cluster, and waits until all of them are ready.
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
