package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
		if s.KubeletsCompared {
			s.expectUpgradeBlocked(ctx, topology())
			s.skip("Cluster API core accepts no other version for a topology with workers whose versions are not those of their " +
				"kubelets; without them: I13")
		}
		s.expectUpgradedTwice(ctx, topology())
	}, NodeTimeout(8*soon))

	s.rule("I13", "workers that are removed from a topology stay, and no longer block its upgrade", invariant, func(ctx SpecContext) {
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

// expectReconciled expects that a topology has created all its objects. Where core compares versions with those
// of kubelets, it reports that workers still upgrade to the version with which they were created.
func (s *suite) expectReconciled(ctx context.Context, c *fixture) {
	GinkgoHelper()
	cluster := s.cluster(ctx, c)
	reconciled := find(cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
	if !s.KubeletsCompared {
		Expect(reconciled).To(HaveField("Status", metav1.ConditionTrue))
		return
	}
	version := cluster.Spec.Topology.Version
	Expect(reconciled).To(And(HaveField("Reason", clusterv1.ClusterTopologyReconciledClusterUpgradingReason), HaveField("Message", Equal(
		fmt.Sprintf("Cluster is upgrading to %s\n  * MachineDeployment %s upgrading to version %s", version,
			strings.Join(s.workersOf(ctx, c), ", "), version)))))
}

// workersOf returns the names of the MachineDeployments of a topology.
func (s *suite) workersOf(ctx context.Context, c *fixture) []string {
	GinkgoHelper()
	var names []string
	for _, deployment := range s.list(ctx, deploymentKind, c.namespace, inTopology) {
		names = append(names, deployment.GetName())
	}
	return names
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

// expectUpgradeBlocked expects that Cluster API core accepts no other version for a topology, only because of the
// kubelets of its workers.
func (s *suite) expectUpgradeBlocked(ctx context.Context, c *fixture) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		_, workers := s.machines(ctx, c)
		g.Expect(workers).NotTo(BeEmpty())
		for _, m := range workers {
			g.Expect(m.Status.NodeInfo).NotTo(BeNil(), m.Name)
			g.Expect(find(m.Status.Conditions, clusterv1.MachineUpToDateCondition).Message).
				To(Equal(fmt.Sprintf("* Node.status.nodeInfo.kubeletVersion %s, %s required", m.Status.NodeInfo.KubeletVersion, m.Spec.Version)),
					m.Name)
		}
	}).Should(Succeed())
	cluster := s.cluster(ctx, c)
	version := nextPatch(cluster.Spec.Topology.Version)
	Expect(s.client.Patch(ctx, cluster, topologyVersion(version), client.DryRunAll)).To(And(Satisfy(apierrors.IsInvalid),
		MatchError(HaveSuffix(
			"spec.topology.version: Invalid value: %q: version cannot be changed: there are still MachineDeployments "+
				"completing a previous upgrade: [%s]", version, strings.Join(s.workersOf(ctx, c), ", ")))))
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

func topologyVersion(version string) client.Patch {
	return client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"topology":{"version":%q}}}`, version))
}

// upgrade sets the next version in a topology, and expects the cluster to run it.
func (s *suite) upgrade(ctx context.Context, c *fixture) {
	GinkgoHelper()
	cluster := s.cluster(ctx, c)
	version, former := nextPatch(cluster.Spec.Topology.Version), text(s.controlPlane(ctx, c), "status", "version")
	Eventually(func() error { return s.client.Patch(ctx, cluster, topologyVersion(version)) }).WithTimeout(2*soon).Should(Succeed(),
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
	}).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(strings.TrimPrefix(version, "v")))))
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
