package conformance

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foreignHook is a hook of another controller.
const foreignHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/conformance"

// replacementRules replace control-plane Machines of an installed cluster, one after the other.
func (s *suite) replacementRules() {
	full := func() *fixture { return s.fixtures.full }
	s.before(func(ctx SpecContext) { s.await(ctx, full()) }, installTimeout)

	s.rule("P35", "remediation", must, func(ctx SpecContext) {
		unhealthy := s.expectRemediated(ctx, full())
		reported := full().seen.first(s.ControlPlane.Kind, func(e entry) bool {
			c := condition(e.object, clusterv1.RemediatingCondition)
			return c.Status == metav1.ConditionTrue && strings.Contains(c.Message, unhealthy.Name)
		})
		Expect(reported).NotTo(BeNil(), "the control plane reports the Machine that it remediates")
		over := func() metav1.ConditionStatus {
			return condition(s.controlPlane(ctx, full()), clusterv1.RemediatingCondition).Status
		}
		Eventually(over).Should(Equal(metav1.ConditionFalse), "the remediation is over")
	}, NodeTimeout(installTimeout+soon))
	s.rule("P38", "hooks on deletion", may, func(ctx SpecContext) {
		machines, _ := s.machines(ctx, full())
		gone, before := machines[0], s.machineUIDs(ctx, full())
		own := preTerminateHooks(&gone)
		if len(own) == 0 {
			s.skip("the provider has no hook")
		}
		s.patch(ctx, &gone, `{"metadata":{"annotations":{%q:"conformance"}}}`, foreignHook)
		Expect(s.client.Delete(ctx, gone.DeepCopy())).To(Succeed())
		current := func() *clusterv1.Machine {
			m := &clusterv1.Machine{}
			Expect(s.client.Get(ctx, client.ObjectKeyFromObject(&gone), m)).To(Succeed())
			return m
		}
		Eventually(func() string { return find(current().Status.Conditions, clusterv1.MachineDeletingCondition).Reason }).
			Should(Equal(clusterv1.MachineDeletingWaitingForPreTerminateHookReason))
		Consistently(func(g Gomega) {
			g.Expect(preTerminateHooks(current())).To(ConsistOf(append(own, foreignHook)), "the provider's own hook comes last")
			infra := s.resolve(ctx, gone.Spec.InfrastructureRef, gone.Namespace)
			g.Expect(infra).NotTo(BeNil())
			g.Expect(infra.GetDeletionTimestamp()).To(BeNil(), "the host is kept")
		}).WithTimeout(held).Should(Succeed())
		s.patch(ctx, &gone, `{"metadata":{"annotations":{%q:null}}}`, foreignHook)
		s.expectReplaced(ctx, full(), gone, before)
	}, NodeTimeout(installTimeout+2*soon))
	// Here, because by now some Machines have joined an installed cluster.
	s.rule("B17", "conditions, also of installed hosts", should, func(ctx SpecContext) {
		s.expectConfigsReport(ctx, full())
		s.expectDisturbanceReported(ctx, full())
	}, NodeTimeout(installTimeout+3*soon))
}

// lateMachine returns a Machine of the control plane that joined the installed cluster. It replaces a Machine if
// none has joined yet.
func (s *suite) lateMachine(ctx context.Context, f *fixture) clusterv1.Machine {
	GinkgoHelper()
	installed := f.seen.first(s.ControlPlane.Kind, s.isInstalled)
	Expect(installed).NotTo(BeNil())
	late := func() []clusterv1.Machine {
		machines, _ := s.machines(ctx, f)
		return slices.DeleteFunc(machines, func(m clusterv1.Machine) bool {
			return f.seen.first(machineKind, func(e entry) bool { return e.GetUID() == m.UID }).version < installed.version
		})
	}
	if len(late()) == 0 {
		s.expectRemediated(ctx, f)
	}
	Expect(late()).NotTo(BeEmpty())
	return late()[0]
}

func preTerminateHooks(m *clusterv1.Machine) []string {
	var hooks []string
	for name := range m.Annotations {
		if strings.HasPrefix(name, clusterv1.PreTerminateDeleteHookAnnotationPrefix) {
			hooks = append(hooks, name)
		}
	}
	return hooks
}

// markUnhealthy sets the conditions that a MachineHealthCheck sets.
func (s *suite) markUnhealthy(ctx context.Context, m *clusterv1.Machine) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		m.Status.Conditions = append(m.Status.Conditions,
			metav1.Condition{
				Type: clusterv1.MachineHealthCheckSucceededCondition, Status: metav1.ConditionFalse,
				Reason: "NodeUnhealthy", LastTransitionTime: metav1.Now(),
			},
			metav1.Condition{
				Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse,
				Reason: clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, LastTransitionTime: metav1.Now(),
			})
		g.Expect(s.client.Status().Update(ctx, m)).To(Succeed())
	}).Should(Succeed())
}

// expectRemediated marks a control-plane Machine as unhealthy, and waits until another one has replaced it.
func (s *suite) expectRemediated(ctx context.Context, f *fixture) clusterv1.Machine {
	GinkgoHelper()
	machines, _ := s.machines(ctx, f)
	unhealthy, before := machines[0], s.machineUIDs(ctx, f)
	s.markUnhealthy(ctx, &unhealthy)
	s.expectReplaced(ctx, f, unhealthy, before)
	return unhealthy
}

// expectReplaced waits until another control-plane Machine has replaced the given one. The others still exist.
func (s *suite) expectReplaced(ctx context.Context, f *fixture, deleted clusterv1.Machine, before []string) {
	GinkgoHelper()
	others := slices.DeleteFunc(slices.Clone(before), func(uid string) bool { return uid == string(deleted.UID) })
	Eventually(func() []string { return s.machineUIDs(ctx, f) }).WithContext(ctx).WithTimeout(installTimeout).
		Should(And(HaveLen(len(before)), Not(ContainElement(string(deleted.UID)))), "Machines of %s", f.Key())
	Expect(f.Available(ctx)).To(Succeed())
	Expect(s.machineUIDs(ctx, f)).To(ContainElements(others), "no other Machine is replaced")
}
