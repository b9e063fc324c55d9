package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inPlaceRules change an installed cluster; no Machine may be replaced.
func (s *suite) inPlaceRules() {
	full := func() *fixture { return s.fixtures.full }
	var unchanged []string

	s.before(func(ctx SpecContext) {
		s.await(ctx, full())
		unchanged = s.machineUIDs(ctx, full())
	}, installTimeout)
	s.after(func(ctx SpecContext) {
		Expect(s.machineUIDs(ctx, full())).To(Equal(unchanged), "Machines of the installed cluster")
	})

	s.rule("P13", "spec.machineTemplate", must, func(ctx SpecContext) {
		crd := s.crd(ctx, s.ControlPlane.Kind)
		for _, path := range [][]string{
			{"metadata"},
			{"spec", "infrastructureRef", "apiGroup"},
			{"spec", "deletion", "nodeDrainTimeoutSeconds"},
		} {
			Expect(schemaOf(crd, append([]string{"spec", "machineTemplate"}, path...)...)).NotTo(BeNil(), "%v", path)
		}
	})
	s.rule("P14", "readiness gates", should, func(ctx SpecContext) {
		s.patch(ctx, s.controlPlane(ctx, full()), `{"spec":{"machineTemplate":{"spec":{"readinessGates":[{"conditionType":"ExaminedByHand"}]}}}}`)
		s.eachMachine(ctx, full(), func(g Gomega, m clusterv1.Machine) {
			g.Expect(find(m.Status.Conditions, clusterv1.MachineReadyCondition).Status).NotTo(Equal(metav1.ConditionTrue), m.Name)
		})
		machines, _ := s.machines(ctx, full())
		for i := range machines {
			m := machines[i].DeepCopy()
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{
				Type: "ExaminedByHand", Status: metav1.ConditionTrue, Reason: "Examined", LastTransitionTime: metav1.Now(),
			})
			Eventually(func() error {
				fresh, _ := s.machines(ctx, full())
				at := slices.IndexFunc(fresh, func(f clusterv1.Machine) bool { return f.Name == m.Name })
				m.ResourceVersion = fresh[at].ResourceVersion
				m.Status.Conditions = append(slices.Clone(fresh[at].Status.Conditions), m.Status.Conditions[len(m.Status.Conditions)-1])
				return s.client.Status().Update(ctx, m)
			}).Should(Succeed())
		}
		s.eachMachine(ctx, full(), func(g Gomega, m clusterv1.Machine) {
			g.Expect(find(m.Status.Conditions, clusterv1.MachineReadyCondition).Status).To(Equal(metav1.ConditionTrue), m.Name)
		})
		s.patch(ctx, s.controlPlane(ctx, full()), `{"spec":{"machineTemplate":{"spec":{"readinessGates":null}}}}`)
		s.eachMachine(ctx, full(), func(g Gomega, m clusterv1.Machine) { g.Expect(m.Spec.ReadinessGates).To(BeEmpty()) })
	}, NodeTimeout(2*soon))
	s.rule("P15", "taints", should, func(ctx SpecContext) { s.expectTaints(ctx, full()) }, NodeTimeout(2*soon))
	s.rule("I12", "another version or template replaces no worker", invariant, func(ctx SpecContext) {
		s.expectEditsReplaceNone(ctx, full())
		Consistently(func() []string { return s.machineUIDs(ctx, full()) }).Should(Equal(unchanged))
	}, NodeTimeout(2*soon))
	s.rule("P29", "metadata is propagated", must, func(ctx SpecContext) {
		controlPlane := s.controlPlane(ctx, full())
		s.patch(ctx, controlPlane, `{"metadata":{"labels":{"conformance/top":"stays"}},"spec":{"machineTemplate":{"metadata":{`+
			`"labels":{"conformance/label":"one"},"annotations":{"conformance/annotation":"two"}}}}}`)
		s.eachPart(ctx, full(), func(g Gomega, o metav1.Object) {
			g.Expect(o.GetLabels()).To(And(HaveKeyWithValue("conformance/label", "one"), Not(HaveKey("conformance/top"))))
			g.Expect(o.GetAnnotations()).To(HaveKeyWithValue("conformance/annotation", "two"))
		})
		s.patch(ctx, controlPlane, `{"metadata":{"labels":{"conformance/top":null}},"spec":{"machineTemplate":{"metadata":null}}}`)
		s.eachPart(ctx, full(), func(g Gomega, o metav1.Object) {
			g.Expect(o.GetLabels()).NotTo(HaveKey("conformance/label"), "the label was removed")
			g.Expect(o.GetAnnotations()).NotTo(HaveKey("conformance/annotation"), "the annotation was removed")
		})
	}, NodeTimeout(2*soon))
	s.rule("P31", "changes in place", must, func(ctx SpecContext) {
		controlPlane := s.controlPlane(ctx, full())
		quick := schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec", "machineTemplate", "spec", "minReadySeconds") != nil
		if quick {
			s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"spec":{"minReadySeconds":1}}}}`)
		}
		s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"spec":{
			"deletion":{"nodeDrainTimeoutSeconds":11,"nodeVolumeDetachTimeoutSeconds":12,"nodeDeletionTimeoutSeconds":13}}}}}`)
		s.eachMachine(ctx, full(), func(g Gomega, m clusterv1.Machine) {
			g.Expect(m.Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(11)))
			g.Expect(m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds).To(HaveValue(BeEquivalentTo(12)))
			g.Expect(m.Spec.Deletion.NodeDeletionTimeoutSeconds).To(HaveValue(BeEquivalentTo(13)))
			g.Expect(!quick || ptr.Deref(m.Spec.MinReadySeconds, 0) == 1).To(BeTrue(), "minReadySeconds")
			g.Expect(find(m.Status.Conditions, clusterv1.MachineUpToDateCondition).Status).To(Equal(metav1.ConditionTrue))
		})
		// A rollout would begin with an additional Machine.
		Consistently(func() []string { return s.machineUIDs(ctx, full()) }).WithTimeout(held).Should(Equal(unchanged))
		Expect(condition(s.controlPlane(ctx, full()), clusterv1.RollingOutCondition).Status).To(Equal(metav1.ConditionFalse))
		s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"spec":{"deletion":null}}}}`)
		s.eachMachine(ctx, full(), func(g Gomega, m clusterv1.Machine) { g.Expect(m.Spec.Deletion.NodeDrainTimeoutSeconds).To(BeNil()) })
		if quick {
			s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"spec":{"minReadySeconds":null}}}}`)
		}
		s.addNote("readiness gates, taints and metadata: P14, P15 and P29; no Machine was replaced by any of them")
	}, NodeTimeout(2*soon))
	s.rule("B19", "changes after the bootstrap data", should, func(ctx SpecContext) {
		_, workers := s.machines(ctx, full())
		config := s.configs(ctx, workers)[0]
		key := full().Key()
		key.Name = text(config, "status", "dataSecretName")
		secret := s.get(ctx, secretKind, key)
		changed, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{"conformance": "changed"}},
			"spec":     s.Bootstrap.Change,
		})
		Expect(err).NotTo(HaveOccurred())
		s.patch(ctx, config, "%s", changed)
		Consistently(func() string {
			return s.get(ctx, secretKind,
				key).GetResourceVersion()
		}).WithTimeout(held).Should(Equal(secret.GetResourceVersion()))
		for field, value := range s.Bootstrap.Change {
			Expect(at(s.again(ctx, config), "spec", field)).To(Equal(value), "the field may be changed")
			s.patch(ctx, config, `{"metadata":{"annotations":{"conformance":null}},"spec":{%q:null}}`, field)
		}
		Expect(s.machineUIDs(ctx, full())).To(Equal(unchanged))
	}, NodeTimeout(soon))
}

// expectEditsReplaceNone sets another version and another bootstrap template in the workers' MachineDeployments:
// with every strategy, and one after the other. Each change is refused, or replaces none of their Machines.
func (s *suite) expectEditsReplaceNone(ctx context.Context, f *fixture) {
	GinkgoHelper()
	deployments := s.list(ctx, deploymentKind, f.namespace)
	Expect(deployments).NotTo(BeEmpty())
	for _, deployment := range deployments {
		s.expectEditsReplaceNoneOf(ctx, f, &deployment)
	}
}

// expectEditsReplaceNoneOf does so with one MachineDeployment.
func (s *suite) expectEditsReplaceNoneOf(ctx context.Context, f *fixture, deployment *object) {
	GinkgoHelper()
	before := s.machineUIDs(ctx, f)
	version := nextPatch(text(s.controlPlane(ctx, f), "status", "version"))
	const (
		onDelete = `"rollout":{"strategy":{"type":"OnDelete","rollingUpdate":null}}`
		rolling  = `"rollout":{"strategy":{"type":"RollingUpdate"}}`
	)
	change := func(content string) error {
		return s.client.Patch(ctx, deployment.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(content)))
	}
	try := func(content string) {
		if err := change(content); err != nil {
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			s.addNote("%v", err)
		}
		Consistently(func() []string { return s.machineUIDs(ctx, f) }).Should(Equal(before), content)
	}
	template := s.copyBootstrapTemplate(ctx, deployment)
	defer func() { Expect(s.client.Delete(ctx, template)).To(Succeed()) }()
	named := fmt.Sprintf(`"bootstrap":{"configRef":{"name":%q}}`, template.GetName())
	try(fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q}}}}`, version))
	try(fmt.Sprintf(`{"spec":{"template":{"spec":{%s}}}}`, named))
	try(fmt.Sprintf(`{"spec":{"template":{"spec":{"version":%q,%s}},%s}}`, version, named, onDelete))
	Expect(text(s.again(ctx, deployment), "spec", "template", "spec", "version")).To(Equal(version), "OnDelete allows another version")
	Expect(text(s.again(ctx, deployment), "spec", "template", "spec", "bootstrap", "configRef", "name")).To(Equal(template.GetName()),
		"OnDelete allows another template")
	try(fmt.Sprintf(`{"spec":{%s}}`, rolling))
	restore, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"version": at(deployment, "spec", "template", "spec", "version"), "bootstrap": at(deployment, "spec", "template", "spec", "bootstrap"),
	}}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(change(string(restore))).To(Succeed())
	Eventually(func(g Gomega) {
		now := s.again(ctx, deployment)
		g.Expect(at(now, "status", "upToDateReplicas")).To(Equal(at(now, "spec", "replicas")))
	}).Should(Succeed(), "all Machines are up to date again")
	Eventually(func() error { return change(fmt.Sprintf(`{"spec":{%s}}`, rolling)) }).Should(Succeed())
}

// copyBootstrapTemplate creates a copy of the bootstrap template of a MachineDeployment, as the topology
// controller does.
func (s *suite) copyBootstrapTemplate(ctx context.Context, deployment *object) *object {
	GinkgoHelper()
	key := client.ObjectKey{
		Namespace: deployment.GetNamespace(),
		Name:      text(deployment, "spec", "template", "spec", "bootstrap", "configRef", "name"),
	}
	template := s.get(ctx, s.Bootstrap.Template, key)
	changed := &object{Object: map[string]any{"spec": template.Object["spec"]}}
	changed.SetGroupVersionKind(template.GroupVersionKind())
	changed.SetNamespace(key.Namespace)
	changed.SetName(key.Name + "-changed")
	Expect(s.client.Create(ctx, changed)).To(Succeed())
	return changed
}

// expectTaints sets a taint on the Machines and removes it again. Core refuses taints unless its feature gate
// MachineTaintPropagation is on; the control plane has to report a refusal.
func (s *suite) expectTaints(ctx context.Context, f *fixture) {
	GinkgoHelper()
	schema := schemaOf(s.crd(ctx, s.ControlPlane.Kind), "spec", "machineTemplate", "spec", "taints")
	Expect(schema.XListMapKeys).To(ConsistOf("key", "effect"))
	Expect(schema.MaxItems).To(HaveValue(BeEquivalentTo(64)))

	controlPlane := s.controlPlane(ctx, f)
	s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"spec":{"taints":[`+
		`{"key":"conformance/taint","effect":"PreferNoSchedule","propagation":"Always"}]}}}}`)
	tainted := func() (all, none bool) {
		machines, _ := s.machines(ctx, f)
		has := func(m clusterv1.Machine) bool { return len(m.Spec.Taints) > 0 }
		given := func(m clusterv1.Machine) bool {
			return slices.ContainsFunc(m.Spec.Taints, func(t clusterv1.MachineTaint) bool {
				return t.Key == "conformance/taint" && t.Effect == corev1.TaintEffectPreferNoSchedule &&
					t.Propagation == clusterv1.MachineTaintPropagationAlways
			})
		}
		return !slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return !given(m) }), !slices.ContainsFunc(machines, has)
	}
	reported := func() string {
		all := conditions(s.controlPlane(ctx, f))
		if i := slices.IndexFunc(all, func(c metav1.Condition) bool { return strings.Contains(c.Message, "taint") }); i >= 0 {
			return all[i].Message
		}
		return ""
	}
	var refused bool
	Eventually(func() bool {
		all, none := tainted()
		refused = none && reported() != ""
		return all || refused
	}).Should(BeTrue(), "the Machines have the taint, or the control plane reports the reason")
	if refused {
		expectRefused(s.TaintsTaken, reported())
		s.addNote("core refuses taints on Machines, and the control plane reports: %s", reported())
	}
	s.patch(ctx, controlPlane, `{"spec":{"machineTemplate":{"spec":{"taints":null}}}}`)
	Eventually(func(g Gomega) {
		_, none := tainted()
		g.Expect(none).To(BeTrue())
		g.Expect(reported()).To(BeEmpty(), "the problem is solved")
	}).Should(Succeed())
}

// expectRefused expects that core refuses taints, for Machines that did not get them.
func expectRefused(taken bool, reported string) {
	GinkgoHelper()
	Expect(taken).To(BeFalse(), "core accepts taints, but the control plane reports %q", reported)
}

func (s *suite) machineUIDs(ctx context.Context, f *fixture) []string {
	GinkgoHelper()
	controlPlane, workers := s.machines(ctx, f)
	var uids []string
	for _, m := range slices.Concat(controlPlane, workers) {
		uids = append(uids, string(m.UID))
	}
	slices.Sort(uids)
	return uids
}

// eachMachine waits until all control-plane Machines pass a check.
func (s *suite) eachMachine(ctx context.Context, f *fixture, check func(Gomega, clusterv1.Machine)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		machines, _ := s.machines(ctx, f)
		for _, m := range machines {
			check(g, m)
		}
	}).Should(Succeed())
}

// eachPart waits until all control-plane Machines, their infra machines and configs pass a check.
func (s *suite) eachPart(ctx context.Context, f *fixture, check func(Gomega, metav1.Object)) {
	GinkgoHelper()
	s.eachMachine(ctx, f, func(g Gomega, m clusterv1.Machine) {
		check(g, &m)
		check(g, s.resolve(ctx, m.Spec.InfrastructureRef, m.Namespace))
		check(g, s.resolve(ctx, m.Spec.Bootstrap.ConfigRef, m.Namespace))
	})
}
