package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// topologyRules check a cluster that is created from a ClusterClass.
func (s *suite) topologyRules() {
	topology := func() *fixture { return s.fixtures.topology }
	// The other clusters are not changed from here on.
	s.before(func(ctx SpecContext) {
		if s.Clusterctl != "" && s.exempt["C18"] == "" {
			s.moved(ctx)
		}
		s.recordQuiet(ctx)
	}, 3*soon)

	s.rule("P22", "template of the control plane, and a cluster from a ClusterClass", must, func(ctx SpecContext) {
		s.await(ctx, topology())
		properties := schemaOf(s.crd(ctx, s.ControlPlane.Template), "spec", "template", "spec").Properties
		Expect(properties).NotTo(Or(HaveKey("version"), HaveKey("replicas")))
		Expect(schemaOf(s.crd(ctx, s.ControlPlane.Template), "spec", "template", "spec", "machineTemplate", "spec",
			"infrastructureRef")).To(BeNil())
		s.expectReconciled(ctx, topology())
		controlPlane := s.controlPlane(ctx, topology())
		Expect(text(controlPlane, "spec", "version")).To(Equal(s.cluster(ctx, topology()).Spec.Topology.Version))
		Expect(text(controlPlane, "spec", "machineTemplate", "spec", "infrastructureRef", "name")).NotTo(BeEmpty(), "by the path of the contract")
	}, NodeTimeout(installTimeout))

	s.rule("B21", "server-side apply dry-run of templates", must, func(ctx SpecContext) {
		for _, k := range []kind{s.Bootstrap.Template, s.ControlPlane.Template} {
			templates := s.list(ctx, k, topology().namespace)
			Expect(templates).NotTo(BeEmpty(), k.Kind)
			change := map[string]any{}
			if k == s.Bootstrap.Template {
				change = s.Bootstrap.Change
			}
			s.expectDryRun(ctx, &templates[0], change)
		}
	}, NodeTimeout(soon))

	s.rule("P39", "a version change replaces no Machine, and neither does the next one", must, func(ctx SpecContext) {
		s.expectUpgradedTwice(ctx, topology())
	}, NodeTimeout(8*soon))

	s.rule("I13", "workers that are removed from a topology stay, and do not block its upgrade", invariant, func(ctx SpecContext) {
		deployments := s.list(ctx, deploymentKind, topology().namespace)
		Expect(deployments).NotTo(BeEmpty())
		s.removeWorkers(ctx, topology())
		s.expectUpgradedTwice(ctx, topology())
		Expect(s.list(ctx, deploymentKind, topology().namespace)).To(HaveLen(len(deployments)), "none was created for the topology")
	}, NodeTimeout(8*soon))

	s.rule("I10", "a cluster from a ClusterClass leaves nothing behind", invariant, func(ctx SpecContext) {
		s.expectDeleted(ctx, topology())
	}, NodeTimeout(deleteTimeout))
}

// expectReconciled waits until a topology has created and updated all its objects: no worker is being upgraded.
func (s *suite) expectReconciled(ctx context.Context, c *fixture) {
	GinkgoHelper()
	Eventually(func() metav1.Condition {
		return find(s.cluster(ctx, c).Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	}).Should(HaveField("Status", metav1.ConditionTrue))
}

// expectUpgradedTwice expects that neither of two upgrades in a row replaces a Machine of a topology. Workers
// may block the second one.
func (s *suite) expectUpgradedTwice(ctx context.Context, c *fixture) {
	GinkgoHelper()
	before := s.machineUIDs(ctx, c)
	for range 2 {
		s.upgrade(ctx, c)
	}
	Consistently(func() []string { return s.machineUIDs(ctx, c) }).Should(Equal(before))
}

// removeWorkers removes the MachineDeployments of a topology from it, as docs/operations/upgrading.md describes.
// The topology is paused meanwhile. Otherwise it would delete MachineDeployments that it owns and does not list,
// and create those that it lists and does not own.
func (s *suite) removeWorkers(ctx context.Context, c *fixture) {
	GinkgoHelper()
	cluster := s.cluster(ctx, c)
	reconciled := func() metav1.Condition {
		return find(s.cluster(ctx, c).Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	}
	s.patch(ctx, cluster, `{"spec":{"paused":true}}`)
	Eventually(reconciled).Should(HaveField("Reason", clusterv1.ClusterTopologyReconcilePausedReason))
	for _, deployment := range s.list(ctx, deploymentKind, c.namespace, inTopology) {
		s.patch(ctx, &deployment, `{"metadata":{"labels":{%q:null},"finalizers":[%q]}}`, clusterv1.ClusterTopologyOwnedLabel,
			clusterv1.MachineDeploymentFinalizer)
	}
	s.patch(ctx, cluster, `{"spec":{"topology":{"workers":null}}}`)
	s.patch(ctx, cluster, `{"spec":{"paused":null}}`)
	Eventually(reconciled).Should(HaveField("Status", metav1.ConditionTrue))
}

// touchAnnotation is an annotation without a meaning, which triggers a reconcile.
const touchAnnotation = "laboratory/look-again"

// inTopology selects the objects that a topology owns.
var inTopology = client.HasLabels{clusterv1.ClusterTopologyOwnedLabel}

// requestVersion requests a version of Kubernetes as a user does, in one change of the Cluster.
func (s *suite) requestVersion(ctx context.Context, c *fixture, version string) error {
	cluster := s.cluster(ctx, c)
	before := cluster.DeepCopy()
	cluster.Spec.Topology.Version = version
	if s.RequestVersion != nil {
		if err := s.RequestVersion(cluster, version); err != nil {
			return err
		}
	}
	return s.client.Patch(ctx, cluster, client.MergeFrom(before))
}

// nextVersion returns the version that follows another.
func (s *suite) nextVersion(version string) string {
	GinkgoHelper()
	if s.NextVersion == nil {
		return nextPatch(version)
	}
	next, err := s.NextVersion(version)
	Expect(err).NotTo(HaveOccurred())
	return next
}

// upgrade sets the next version in a topology, and expects the cluster to run it.
func (s *suite) upgrade(ctx context.Context, c *fixture) {
	GinkgoHelper()
	cluster := s.cluster(ctx, c)
	version, former := s.nextVersion(cluster.Spec.Topology.Version), text(s.controlPlane(ctx, c), "status", "version")
	Eventually(func() error { return s.requestVersion(ctx, c, version) }).WithTimeout(2*soon).Should(Succeed(),
		"Cluster API accepts no version while workers have another")
	// A new version may be deferred if it is set while the last worker gets the former one. It is propagated
	// when an object of the topology changes, or after ten minutes (--sync-period of core): a Machine does not
	// trigger that.
	Eventually(func() string {
		s.patch(ctx, cluster, `{"metadata":{"annotations":{%q:%q}}}`, touchAnnotation, time.Now().String())
		return text(s.controlPlane(ctx, c), "spec", "version")
	}).WithPolling(time.Second).Should(Equal(version), "the topology propagates the version")
	Eventually(func() metav1.Condition {
		return condition(s.controlPlane(ctx, c), clusterv1.MachinesUpToDateCondition)
	}).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", Not(BeEmpty()))))
	s.expectDone(c.Upgrade(ctx, version))
	Eventually(func(g Gomega) {
		controlPlane := s.controlPlane(ctx, c)
		g.Expect(text(controlPlane, "status", "version")).To(Equal(version))
		g.Expect(condition(controlPlane, clusterv1.MachinesUpToDateCondition).Status).To(Equal(metav1.ConditionTrue))
		g.Expect(condition(controlPlane, clusterv1.RollingOutCondition).Status).To(Equal(metav1.ConditionFalse))
	}).WithTimeout(3 * soon).Should(Succeed())
	Eventually(func(g Gomega) { expectVersionsReported(g, c.seen.of(s.ControlPlane.Kind), former, version) }).
		WithTimeout(still).Should(Succeed())
	Eventually(func(g Gomega) {
		for _, deployment := range s.list(ctx, deploymentKind, c.namespace, inTopology) {
			g.Expect(text(&deployment, "spec", "template", "spec", "version")).To(Equal(version), "the version of the workers")
		}
	}).Should(Succeed())
	s.expectReconciled(ctx, c)
}

// expectDryRun applies a changed template as the topology controller does to find out the effects of a change.
func (s *suite) expectDryRun(ctx context.Context, template *object, change map[string]any) {
	GinkgoHelper()
	changed := &object{Object: map[string]any{}}
	changed.SetGroupVersionKind(template.GroupVersionKind())
	changed.SetNamespace(template.GetNamespace())
	changed.SetName(template.GetName())
	changed.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
	changed.Object["spec"] = map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"conformance": "dry-run"}}, "spec": runtime.DeepCopyJSON(change),
	}}
	dryRun := func() error {
		return s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(changed.DeepCopy()),
			client.FieldOwner("capi-topology"), client.ForceOwnership, client.DryRunAll)
	}
	Expect(dryRun()).To(Succeed(), title(template))
	// Without the annotation the change may be refused, because of immutability only.
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
