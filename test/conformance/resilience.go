//go:build conformance

package conformance

import (
	"context"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// resilienceRules take away from an installed cluster what the providers have written, and pause it.
func (s *suite) resilienceRules() {
	small := func() *fixture { return s.fixtures.small }
	BeforeAll(func(ctx SpecContext) { s.await(ctx, small()) }, NodeTimeout(installTimeout))

	s.rule("I1", "owner references and finalizers are restored", invariant, func(ctx SpecContext) {
		s.settled(ctx, "small")
		before := s.all(ctx, "small")
		s.takeAway(ctx, before)
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
				return comparable(s.get(ctx, before.GroupVersionKind(), types.NamespacedName{Namespace: "small", Name: before.GetName()}))
			}).Should(Equal(comparable(before)), title(before))
		}
	}, NodeTimeout(3*soon))

	s.rule("B25", "pause of configs", should, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, small())
		s.expectPause(ctx, s.configs(ctx, machines)[0])
	}, NodeTimeout(2*soon))
	s.rule("P34", "pause of the control plane", should, func(ctx SpecContext) {
		s.expectPause(ctx, s.controlPlane(ctx, small()))
	}, NodeTimeout(2*soon))
	s.rule("C21", "pause of the Cluster", must, func(ctx SpecContext) { s.expectClusterPause(ctx, small()) }, NodeTimeout(3*soon))
}

// isOurs is true for what the providers under test write: their own kinds, the Machines of the control plane, and Secrets.
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
	return false
}

// takeAway removes, of what the providers write, the finalizers of their own kinds and the owner references of the rest.
func (s *suite) takeAway(ctx context.Context, objects []object) {
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

// comparable is a status without times.
func comparable(o *object) map[string]any {
	status, _ := at(o, "status").(map[string]any)
	if status == nil {
		return nil
	}
	status = maps.Clone(status)
	conditions, _ := status["conditions"].([]any)
	var timeless []any
	for _, c := range conditions {
		c := maps.Clone(c.(map[string]any))
		delete(c, "lastTransitionTime")
		timeless = append(timeless, c)
	}
	slices.SortFunc(timeless, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["type"].(string), b.(map[string]any)["type"].(string))
	})
	status["conditions"] = timeless
	return status
}

// expectPause pauses an object by its annotation and takes its finalizers away: nothing may be written before it goes on.
func (s *suite) expectPause(ctx context.Context, o *object) {
	GinkgoHelper()
	s.settled(ctx, "small")
	key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	paused := func() metav1.ConditionStatus {
		return condition(s.get(ctx, o.GroupVersionKind(), key), clusterv1.PausedCondition).Status
	}
	s.patch(ctx, o, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":""}}}`)
	Eventually(paused).Should(Equal(metav1.ConditionTrue))
	s.patch(ctx, o, `{"metadata":{"finalizers":null}}`)
	s.expectStill(ctx, "small")
	s.patch(ctx, o, `{"metadata":{"annotations":{"cluster.x-k8s.io/paused":null}}}`)
	Eventually(paused).Should(Equal(metav1.ConditionFalse))
	Eventually(func() []string { return s.get(ctx, o.GroupVersionKind(), key).GetFinalizers() }).Should(ConsistOf(o.GetFinalizers()), "it has caught up")
}

// expectStill checks that nothing is written in a namespace.
func (s *suite) expectStill(ctx context.Context, namespace string) {
	GinkgoHelper()
	before := s.versions(ctx, namespace)
	Consistently(func() map[string]string { return s.versions(ctx, namespace) }).Should(Equal(before), "what is written in %s", namespace)
}

// expectClusterPause pauses the Cluster, changes this and that, and lets it go on.
func (s *suite) expectClusterPause(ctx context.Context, f *fixture) {
	GinkgoHelper()
	cluster, controlPlane := s.cluster(ctx, f), s.controlPlane(ctx, f)
	machines, _ := s.machines(ctx, f)
	ours := append(s.configs(ctx, machines), controlPlane)
	paused := func(status metav1.ConditionStatus) {
		GinkgoHelper()
		for _, o := range ours {
			Eventually(func() metav1.ConditionStatus {
				return condition(s.get(ctx, o.GroupVersionKind(), types.NamespacedName{Namespace: f.namespace, Name: o.GetName()}), clusterv1.PausedCondition).Status
			}).Should(Equal(status), title(o))
		}
	}
	s.patch(ctx, cluster, `{"spec":{"paused":true}}`)
	paused(metav1.ConditionTrue)
	s.settled(ctx, f.namespace)
	s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"metadata":{"labels":{"conformance/paused":"later"}}}}}`)
	s.takeAway(ctx, s.all(ctx, f.namespace))
	s.expectStill(ctx, f.namespace)
	s.patch(ctx, cluster, `{"spec":{"paused":false}}`)
	paused(metav1.ConditionFalse)
	s.eachMachine(ctx, f, func(g Gomega, m clusterv1.Machine) {
		g.Expect(m.Labels).To(HaveKeyWithValue("conformance/paused", "later"))
		g.Expect(m.OwnerReferences).NotTo(BeEmpty())
	})
}
