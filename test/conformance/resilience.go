package conformance

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resilienceRules pause an installed cluster, and remove what the providers have written.
func (s *suite) resilienceRules() {
	small := func() *fixture { return s.fixtures.small }
	s.before(func(ctx SpecContext) {
		s.await(ctx, small())
		s.settled(ctx, "small")
	}, installTimeout)

	s.rule("B25", "pause of configs", should, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, small())
		s.expectPause(ctx, s.configs(ctx, machines)[0])
	}, NodeTimeout(2*soon))
	s.rule("P34", "pause of the control plane", should, func(ctx SpecContext) {
		s.expectPause(ctx, s.controlPlane(ctx, small()))
	}, NodeTimeout(2*soon))
	s.rule("C21", "pause of the Cluster, and no move while it installs", must, func(ctx SpecContext) {
		s.expectMoveBlocked(ctx, small())
		s.expectClusterPause(ctx, small())
	}, NodeTimeout(3*soon))
	s.rule("I9", "a control plane without owner obeys a pause", invariant, func(ctx SpecContext) {
		s.expectPauseOfOrphan(ctx, small())
	}, NodeTimeout(2*soon))

	s.rule("I1", "owner references and finalizers are restored", invariant, func(ctx SpecContext) {
		machines := s.machineUIDs(ctx, small())
		before := s.all(ctx, "small")
		s.removeOwnersAndFinalizers(ctx, before)
		for _, o := range before {
			if !s.isOurs(&o) {
				continue
			}
			Eventually(func(g Gomega) {
				now := s.get(ctx, o.GroupVersionKind(), types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
				g.Expect(now).NotTo(BeNil())
				g.Expect(now.GetFinalizers()).To(ConsistOf(o.GetFinalizers()))
				g.Expect(now.GetOwnerReferences()).To(ConsistOf(o.GetOwnerReferences()))
			}).Should(Succeed(), title(&o))
		}
		s.calm(ctx, "small")
		Expect(s.machineUIDs(ctx, small())).To(Equal(machines), "no additional Machine exists")
		Expect(small().everCreated(machineKind)).To(ConsistOf(machines), "no additional Machine was ever created")
	}, NodeTimeout(3*soon))
	s.rule("B15", "deterministic name and data", must, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, small())
		config := s.configs(ctx, machines)[0]
		key := types.NamespacedName{Namespace: "small", Name: text(config, "status", "dataSecretName")}
		secret := s.get(ctx, secretKind, key)
		s.patchStatus(ctx, config, `{"status":null}`)
		Eventually(func() string { return text(s.configs(ctx, machines)[0], "status", "dataSecretName") }).Should(Equal(key.Name))
		Consistently(func() any { return at(s.get(ctx, secretKind, key), "data") }).Should(Equal(at(secret, "data")))
	}, NodeTimeout(soon))
	s.rule("C20", "status is rebuilt", must, func(ctx SpecContext) {
		s.settled(ctx, "small")
		machines, _ := s.machines(ctx, small())
		for _, before := range append(s.configs(ctx, machines), s.controlPlane(ctx, small())) {
			s.patchStatus(ctx, before, `{"status":null}`)
			Eventually(func() map[string]any {
				return timeless(s.get(ctx, before.GroupVersionKind(), types.NamespacedName{Namespace: "small", Name: before.GetName()}))
			}).Should(Equal(timeless(before)), title(before))
		}
	}, NodeTimeout(3*soon))
}

// expectMoveBlocked checks the history of an installation: until its end the control plane blocks moves by
// clusterctl.
func (s *suite) expectMoveBlocked(ctx context.Context, f *fixture) {
	GinkgoHelper()
	blocks := func(e entry) bool {
		_, found := e.GetAnnotations()[blockMove]
		return found
	}
	blocked, done := f.seen.first(s.ControlPlane.Kind, blocks), f.seen.first(s.ControlPlane.Kind, s.isInstalled)
	Expect(blocked).NotTo(BeNil(), "the control plane has the annotation while it installs")
	Expect(done).NotTo(BeNil())
	begun := f.seen.first(cmp.Or(s.Registration, machineKind), func(entry) bool { return true })
	Expect(blocked.version).To(BeNumerically("<", begun.version), "before any object is created")
	early := slices.DeleteFunc(f.seen.of(s.ControlPlane.Kind), func(e entry) bool {
		return e.version < blocked.version || e.version >= done.version || blocks(e)
	})
	Expect(len(early)).To(BeNumerically("<=", 1), "writes without the annotation before the one that reports the installation")
	Expect(blocks(entry{object: s.controlPlane(ctx, f)})).To(BeFalse(), "an installed cluster may be moved")
}

// isInstalled reports whether the cluster of a control plane is installed.
func (s *suite) isInstalled(e entry) bool {
	return condition(e.object, s.Installed).Status == metav1.ConditionTrue
}

// isOurs reports whether the providers under test write an object. They write their own kinds, the Machines of
// the control plane, Secrets, and the template of infra machines. It is meant for a cluster without workers.
func (s *suite) isOurs(o *object) bool {
	switch o.GroupVersionKind() {
	case s.ControlPlane.Kind, s.Bootstrap.Kind:
		return true
	case machineKind:
		_, found := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return found
	case secretKind:
		// A kubeconfig without owner is the user's own.
		return len(o.GetOwnerReferences()) > 0 && !strings.HasSuffix(o.GetName(), "-kubeconfig") && slices.ContainsFunc(o.GetOwnerReferences(),
			func(ref metav1.OwnerReference) bool { return ref.Kind == s.Bootstrap.Kind.Kind })
	}
	// The template of the infra machines, which the control plane owns.
	return strings.HasSuffix(o.GetKind(), "MachineTemplate") && len(o.GetOwnerReferences()) > 0
}

// removeOwnersAndFinalizers removes the finalizers of the providers' own kinds, and the owner references of the other objects
// that they write.
func (s *suite) removeOwnersAndFinalizers(ctx context.Context, objects []object) {
	GinkgoHelper()
	for _, o := range objects {
		switch {
		case !s.isOurs(&o):
		case o.GroupVersionKind() == s.ControlPlane.Kind, o.GroupVersionKind() == s.Bootstrap.Kind:
			s.patch(ctx, &o, `{"metadata":{"finalizers":null}}`)
		default:
			s.patch(ctx, &o, `{"metadata":{"ownerReferences":null}}`)
		}
	}
}

// timeless returns the status of an object without times.
func timeless(o *object) map[string]any {
	status, _ := at(o, "status").(map[string]any)
	if status == nil {
		return nil
	}
	status = maps.Clone(status)
	conditions, _ := status["conditions"].([]any)
	var bare []any
	for _, c := range conditions {
		c := maps.Clone(c.(map[string]any))
		delete(c, "lastTransitionTime")
		bare = append(bare, c)
	}
	slices.SortFunc(bare, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
	})
	status["conditions"] = bare
	return status
}

// expectPause pauses an object by its annotation and removes its finalizers: nothing may be written before the
// pause ends.
func (s *suite) expectPause(ctx context.Context, o *object) {
	GinkgoHelper()
	s.patch(ctx, o, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	s.awaitPaused(ctx, metav1.ConditionTrue, o)
	s.calm(ctx, "small")
	s.patch(ctx, o, `{"metadata":{"finalizers":null}}`)
	s.expectNoWrites(ctx, "small")
	Expect(s.again(ctx, o).GetFinalizers()).To(BeEmpty(), "the finalizers stay removed")
	s.patch(ctx, o, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
	s.awaitPaused(ctx, metav1.ConditionFalse, o)
	Eventually(func() []string { return s.again(ctx, o).GetFinalizers() }).Should(ConsistOf(o.GetFinalizers()), "the finalizers are restored")
}

// awaitPaused waits until all objects report whether they are paused.
func (s *suite) awaitPaused(ctx context.Context, status metav1.ConditionStatus, objects ...*object) {
	GinkgoHelper()
	for _, o := range objects {
		Eventually(func() metav1.ConditionStatus { return condition(s.again(ctx, o), clusterv1.PausedCondition).Status }).Should(Equal(status),
			title(o))
	}
}

// again reads an object again.
func (w world) again(ctx context.Context, o *object) *object {
	GinkgoHelper()
	found := w.get(ctx, o.GroupVersionKind(), client.ObjectKeyFromObject(o))
	Expect(found).NotTo(BeNil(), title(o))
	return found
}

// expectNoWrites checks that nothing is written in a namespace, for longer than a provider defers writes.
func (s *suite) expectNoWrites(ctx context.Context, namespace string) {
	GinkgoHelper()
	before := s.versions(ctx, namespace)
	// Writes stay visible, so that a long polling interval misses none.
	Consistently(func() map[string]string { return s.versions(ctx, namespace) }).WithTimeout(held).WithPolling(held/6).Should(Equal(before),
		"what is written in %s", namespace)
}

// expectClusterPause pauses the Cluster, changes several objects, and ends the pause.
func (s *suite) expectClusterPause(ctx context.Context, f *fixture) {
	GinkgoHelper()
	cluster, controlPlane := s.cluster(ctx, f), s.controlPlane(ctx, f)
	machines, _ := s.machines(ctx, f)
	ours := append(s.configs(ctx, machines), controlPlane)
	s.patch(ctx, cluster, `{"spec":{"paused":true}}`)
	s.awaitPaused(ctx, metav1.ConditionTrue, ours...)
	s.calm(ctx, f.namespace)
	s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"metadata":{"labels":{"conformance/paused":"later"}}}}}`)
	s.settled(ctx, f.namespace) // a provider may report later that it has seen the change and is paused
	s.removeOwnersAndFinalizers(ctx, s.all(ctx, f.namespace))
	s.expectNoWrites(ctx, f.namespace)
	for _, o := range ours {
		Expect(s.again(ctx, o).GetFinalizers()).To(BeEmpty(), title(o))
	}
	s.patch(ctx, cluster, `{"spec":{"paused":false}}`)
	s.awaitPaused(ctx, metav1.ConditionFalse, ours...)
	s.eachMachine(ctx, f, func(g Gomega, m clusterv1.Machine) {
		g.Expect(m.Labels).To(HaveKeyWithValue("conformance/paused", "later"))
		g.Expect(m.OwnerReferences).NotTo(BeEmpty())
	})
}

// expectPauseOfOrphan removes the owner reference to a paused Cluster from the control plane: the pause still
// applies.
func (s *suite) expectPauseOfOrphan(ctx context.Context, f *fixture) {
	GinkgoHelper()
	cluster, controlPlane := s.cluster(ctx, f), s.controlPlane(ctx, f)
	machines, _ := s.machines(ctx, f)
	s.patch(ctx, cluster, `{"spec":{"paused":true}}`)
	s.awaitPaused(ctx, metav1.ConditionTrue, append(s.configs(ctx, machines), controlPlane)...)
	s.calm(ctx, f.namespace)
	s.patch(ctx, controlPlane, `{"metadata":{"ownerReferences":null,"finalizers":null}}`)
	s.expectNoWrites(ctx, f.namespace)
	Expect(s.again(ctx, controlPlane).GetFinalizers()).To(BeEmpty(), "the finalizers stay removed")
	s.patch(ctx, cluster, `{"spec":{"paused":false}}`)
	s.awaitPaused(ctx, metav1.ConditionFalse, controlPlane)
	Eventually(func(g Gomega) {
		now := s.again(ctx, controlPlane)
		g.Expect(now.GetOwnerReferences()).To(ConsistOf(controlPlane.GetOwnerReferences()))
		g.Expect(now.GetFinalizers()).To(ConsistOf(controlPlane.GetFinalizers()))
	}).Should(Succeed(), "owner reference and finalizers are restored")
}
