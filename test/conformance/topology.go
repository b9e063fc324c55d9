package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// topologyRules look at a cluster that is made from a ClusterClass.
func (s *suite) topologyRules() {
	topology := func() *fixture { return s.fixtures.topology }
	// The other clusters are not touched from here on.
	before(func(ctx SpecContext) {
		if s.Clusterctl != "" {
			s.moved(ctx)
		}
		s.becomeQuiet(ctx)
	}, 3*soon)

	s.rule("P22", "template of the control plane, and a cluster from a ClusterClass", must, func(ctx SpecContext) {
		s.await(ctx, topology())
		properties := schemaOf(s.crd(ctx, s.ControlPlane.Template), "spec", "template", "spec").Properties
		Expect(properties).NotTo(Or(HaveKey("version"), HaveKey("replicas")))
		Expect(schemaOf(s.crd(ctx, s.ControlPlane.Template), "spec", "template", "spec", "machineTemplate", "spec", "infrastructureRef")).To(BeNil())
		Expect(find(s.cluster(ctx, topology()).Status.Conditions, clusterv1.ClusterTopologyReconciledCondition).Status).To(Equal(metav1.ConditionTrue))
		controlPlane := s.controlPlane(ctx, topology())
		Expect(text(controlPlane, "spec", "version")).To(Equal(s.cluster(ctx, topology()).Spec.Topology.Version))
		Expect(text(controlPlane, "spec", "machineTemplate", "spec", "infrastructureRef", "name")).NotTo(BeEmpty(), "by the path of the contract")
	}, NodeTimeout(installTimeout))

	s.rule("B21", "server-side apply dry-run of templates", must, func(ctx SpecContext) {
		for _, k := range []kind{s.Bootstrap.Template, s.ControlPlane.Template} {
			templates := s.list(ctx, k, "topology")
			Expect(templates).NotTo(BeEmpty(), k.Kind)
			s.expectDryRun(ctx, &templates[0])
		}
	}, NodeTimeout(soon))

	s.rule("P39", "a version change replaces no Machine, and neither does the next one", must, func(ctx SpecContext) {
		before := s.machineUIDs(ctx, topology())
		for range 2 {
			s.upgrade(ctx, topology())
		}
		Consistently(func() []string { return s.machineUIDs(ctx, topology()) }).Should(Equal(before))
	}, NodeTimeout(8*soon))

	s.rule("I10", "a cluster from a ClusterClass leaves nothing behind", invariant, func(ctx SpecContext) {
		s.expectDeleted(ctx, topology())
	}, NodeTimeout(deleteTimeout))
}

// upgrade gives a topology the next version, and expects the cluster to run it.
func (s *suite) upgrade(ctx context.Context, c *fixture) {
	GinkgoHelper()
	cluster := s.cluster(ctx, c)
	version := nextPatch(cluster.Spec.Topology.Version)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"topology":{"version":%q}}}`, version))
	Eventually(func() error { return s.client.Patch(ctx, cluster, patch) }).WithTimeout(2*soon).Should(Succeed(), "Cluster API takes no version while workers have another")
	Eventually(func() string { return text(s.controlPlane(ctx, c), "spec", "version") }).Should(Equal(version), "the topology passes it on")
	Eventually(func() metav1.Condition {
		return condition(s.controlPlane(ctx, c), clusterv1.MachinesUpToDateCondition)
	}).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(strings.TrimPrefix(version, "v")))))
	Expect(c.Upgrade(ctx, version)).To(Succeed())
	Eventually(func(g Gomega) {
		controlPlane := s.controlPlane(ctx, c)
		g.Expect(text(controlPlane, "status", "version")).To(Equal(version))
		g.Expect(condition(controlPlane, clusterv1.MachinesUpToDateCondition).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(condition(controlPlane, clusterv1.RollingOutCondition).Status).To(Equal(metav1.ConditionFalse))
	}).WithTimeout(3 * soon).Should(Succeed())
	Eventually(func(g Gomega) {
		for _, deployment := range s.list(ctx, deploymentKind, "topology") {
			g.Expect(text(&deployment, "spec", "template", "spec", "version")).To(Equal(version), "the workers have their turn")
		}
	}).Should(Succeed())
}

// expectDryRun applies a changed template as the topology controller does to find out what a change would mean.
func (s *suite) expectDryRun(ctx context.Context, template *object) {
	GinkgoHelper()
	changed := &object{Object: map[string]any{}}
	changed.SetGroupVersionKind(template.GroupVersionKind())
	changed.SetNamespace(template.GetNamespace())
	changed.SetName(template.GetName())
	changed.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
	changed.Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"conformance": "dry-run"}}}}
	dryRun := func() error {
		return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(changed.DeepCopy()),
			client.FieldOwner("capi-topology"), client.ForceOwnership, client.DryRunAll)
	}
	Expect(dryRun()).To(Succeed(), title(template))
	// The same without the annotation may be refused, by immutability, but by nothing else.
	changed.SetAnnotations(nil)
	if err := dryRun(); err != nil {
		Expect(apierrors.IsInvalid(err) || apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	}
}

func nextPatch(version string) string {
	GinkgoHelper()
	parsed, err := semver.ParseTolerant(version)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("v%d.%d.%d", parsed.Major, parsed.Minor, parsed.Patch+1)
}
