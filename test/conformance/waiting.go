package conformance

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waitingRules check objects that wait because a dependency is missing.
func (s *suite) waitingRules() {
	const namespace = "waiting"
	var waiting *fixture

	s.before(func(ctx SpecContext) {
		waiting = s.apply(ctx, ClusterOptions{Sample: Small, Namespace: namespace, NoHosts: true, Without: isInfraCluster})
	}, soon)

	s.rule("P6", "waits for the endpoint", should, func(ctx SpecContext) {
		Eventually(func() []metav1.Condition { return conditions(s.controlPlane(ctx, waiting)) }).
			Should(ContainElement(And(HaveField("Type", clusterv1.AvailableCondition), HaveField("Status", metav1.ConditionFalse))))
		infrastructure := s.cluster(ctx, waiting).Spec.InfrastructureRef.Kind
		Eventually(func(g Gomega) { expectWaitsFor(g, s.controlPlane(ctx, waiting), infrastructure) }).Should(Succeed())
		Consistently(func() []clusterv1.Machine {
			machines, _ := s.machines(ctx, waiting)
			return machines
		}).WithTimeout(held).Should(BeEmpty())
	}, NodeTimeout(soon))

	s.rule("B26", "reports its dependency", info, func(ctx SpecContext) {
		alone := s.newConfig(namespace, "alone")
		Expect(s.client.Create(ctx, alone)).To(Succeed())
		early := s.newConfig(namespace, "early")
		Expect(s.client.Create(ctx, early)).To(Succeed())
		machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "early"}}
		machine.Spec.ClusterName = waiting.Key().Name
		machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: s.Bootstrap.Kind.Group, Kind: s.Bootstrap.Kind.Kind, Name: "early",
		}
		machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure." + capiGroup,
			Kind:     strings.TrimSuffix(s.cluster(ctx, waiting).Spec.InfrastructureRef.Kind, "Cluster") + "Machine", Name: "early",
		}
		Expect(s.client.Create(ctx, machine)).To(Succeed())
		first := s.reason(ctx, alone)
		Eventually(func() string { return s.reason(ctx, early) }).Should(And(Not(BeEmpty()), Not(Equal(first))),
			"the reason with a Machine, but no infrastructure")
		s.addNote("%s, %s", first, s.reason(ctx, early))
		for _, config := range []*object{alone, early} {
			Expect(s.get(ctx, secretKind, client.ObjectKeyFromObject(config))).To(BeNil(), "no bootstrap data yet")
		}
		Expect(s.client.Delete(ctx, machine)).To(Succeed())
		Expect(s.client.Delete(ctx, alone)).To(Succeed())
		Eventually(func() *object { return s.get(ctx, s.Bootstrap.Kind, client.ObjectKeyFromObject(alone)) }).Should(BeNil(),
			"a config without Machine can be deleted")
	}, NodeTimeout(2*soon))

	s.rule("P28", "spread over failure domains", info, func(ctx SpecContext) {
		domains := []string{"one", "three", "two"}
		spread := s.apply(ctx, ClusterOptions{
			Sample: Full, Namespace: "domains", NoHosts: true,
			Edit: func(o *object) {
				if isInfraCluster(o) {
					var list []any
					for _, name := range domains {
						list = append(list, map[string]any{"name": name, "controlPlane": true})
					}
					o.Object["spec"].(map[string]any)["failureDomains"] = list
				}
			},
		})
		Eventually(func() []string {
			var found []string
			machines, _ := s.machines(ctx, spread)
			for _, m := range machines {
				found = append(found, m.Spec.FailureDomain)
			}
			return found
		}).Should(ConsistOf(domains))
		s.awaitHealthChecks(ctx, spread)
		s.expectDeleted(ctx, spread)
	}, NodeTimeout(deleteTimeout))

	s.rule("I2", "a waiting cluster can be deleted", invariant,
		func(ctx SpecContext) { s.expectDeleted(ctx, waiting) }, NodeTimeout(deleteTimeout))
}

// expectWaitsFor expects a control plane to report its dependency: the infrastructure, or the endpoint that the
// infrastructure sets.
func expectWaitsFor(g Gomega, controlPlane *object, infrastructure string) {
	GinkgoHelper()
	g.Expect(conditions(controlPlane)).To(ContainElement(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", HavePrefix("Waiting")),
		HaveField("Message", Or(ContainSubstring(infrastructure), ContainSubstring("infrastructure"), ContainSubstring("ndpoint"))))),
		title(controlPlane))
}

// awaitHealthChecks waits until the Cluster owns its MachineHealthChecks. From v1.14 on Cluster API sets the
// owner with its second reconcile, 15 s after the first. A Cluster that is deleted before leaves them behind.
func (s *suite) awaitHealthChecks(ctx context.Context, f *fixture) {
	GinkgoHelper()
	Eventually(func() []string {
		var left []string
		for _, check := range s.list(ctx, healthCheckKind, f.namespace) {
			if len(check.GetOwnerReferences()) == 0 {
				left = append(left, check.GetName())
			}
		}
		return left
	}).Should(BeEmpty())
}

// isInfraCluster recognizes the infrastructure cluster by its group and kind, before any object refers to it.
func isInfraCluster(o *object) bool {
	return o.GroupVersionKind().Group == "infrastructure."+capiGroup && strings.HasSuffix(o.GetKind(), "Cluster")
}

func (s *suite) newConfig(namespace, name string) *object {
	config := &object{Object: map[string]any{}}
	config.SetGroupVersionKind(s.Bootstrap.Kind)
	config.SetNamespace(namespace)
	config.SetName(name)
	if s.Bootstrap.Example != nil {
		config.Object["spec"] = s.Bootstrap.Example
	}
	return config
}

// reason waits until an object has the condition Ready, and returns its reason.
func (s *suite) reason(ctx SpecContext, o *object) string {
	GinkgoHelper()
	var reason string
	Eventually(func() string {
		found := s.get(ctx, o.GroupVersionKind(), client.ObjectKeyFromObject(o))
		if found != nil {
			reason = condition(found, clusterv1.ReadyCondition).Reason
		}
		return reason
	}).Should(Not(BeEmpty()), title(o))
	return reason
}
