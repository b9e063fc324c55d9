package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Remediation", Label("remediation"), func() {
	It("replaces a master that is away for good, and loses no write", func(ctx SpecContext) {
		expectLostMasterReplaced(ctx, "remediation", func() {})
		Expect(events(ctx, "remediation", "MachineRemediated")).To(HaveLen(1))
	}, NodeTimeout(installTimeout+2*replaceTimeout))

	It("does so though the managers die at each of their writes", Label("nightly"), func(ctx SpecContext) {
		var live func() int
		expectLostMasterReplaced(ctx, "mortal", func() { live = makeMortal(ctx, "mortal") })
		Expect(live()).To(BeNumerically(">", 20), "deaths")
	}, NodeTimeout(installTimeout+3*replaceTimeout))

	It("reboots a master first where a template says so, and replaces it only when that does not help", Label("nightly"),
		func(ctx SpecContext) {
			onlySimulated()
			cluster := apply(ctx, "compact", lab.Mutations{Namespace: "reboot", ClusterName: "rebooted", EtcdMembers: true, ExtraHosts: 1})
			waitAvailable(ctx, cluster)
			expectWell(ctx, cluster)
			before := state(ctx, cluster)
			hung := before.Machines[0]
			boots := len(rackHost(hung).Boots())
			writer := cluster.StartWriting(ctx)
			check := healthCheckOfMasters(cluster)
			check.Spec.Remediation.TemplateRef = rebootTemplate(ctx, cluster)
			Expect(laboratory.Client().Create(ctx, check)).To(Succeed())

			loseNode(ctx, cluster, hung.Status.NodeRef.Name)
			Eventually(ctx, func() int { return len(listAll(ctx, metal3Kind("Metal3Remediation"), cluster.Namespace)) }).Should(Equal(1))
			Eventually(ctx, func() int { return len(rackHost(hung).Boots()) }).Should(Equal(boots + 1))
			Eventually(ctx, func() []unstructured.Unstructured {
				return listAll(ctx, metal3Kind("Metal3Remediation"), cluster.Namespace)
			}).Should(BeEmpty())
			expectWell(ctx, cluster)
			for _, m := range before.Machines {
				Expect(has(state(ctx, cluster), m)).To(BeTrue(), "Machine %s is the one that it was", m.Name)
			}
			Expect(events(ctx, cluster.Namespace, "MachineRemediated")).To(BeEmpty())

			By("losing it again, and this time a reboot does not help")
			rackHost(hung).Hang()
			loseNode(ctx, cluster, hung.Status.NodeRef.Name)
			waitReplaced(ctx, cluster, hung)
			expectWell(ctx, cluster)
			Expect(len(rackHost(hung).Boots())).To(BeNumerically(">=", boots+2), "it was rebooted first")
			expectNothingLost(ctx, cluster, writer)
			expectRemediated(ctx, cluster, hung)
		}, NodeTimeout(installTimeout+2*replaceTimeout))
})

func metal3Kind(kind string) schema.GroupVersionKind {
	return lab.Metal3MachineKind.GroupVersion().WithKind(kind)
}

// rebootTemplate makes CAPM3 reboot hosts that a MachineHealthCheck finds unhealthy, once, and wait for as short a time as it can.
func rebootTemplate(ctx context.Context, cluster *lab.Cluster) clusterv1.MachineHealthCheckRemediationTemplateReference {
	GinkgoHelper()
	template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"strategy": map[string]any{"type": "Reboot", "retryLimit": int64(1), "timeoutSeconds": int64(100)},
	}}}}}
	template.SetGroupVersionKind(metal3Kind("Metal3RemediationTemplate"))
	template.SetNamespace(cluster.Namespace)
	template.SetName(cluster.Name)
	Expect(laboratory.Client().Create(ctx, template)).To(Succeed())
	return clusterv1.MachineHealthCheckRemediationTemplateReference{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: template.GetName(),
	}
}

// expectLostMasterReplaced installs a cluster, loses the master that leads etcd, and expects that a MachineHealthCheck
// has it replaced. before is called before it is lost.
func expectLostMasterReplaced(ctx context.Context, namespace string, before func()) {
	GinkgoHelper()
	onlySimulated()
	cluster := apply(ctx, "compact", lab.Mutations{Namespace: namespace, ClusterName: "healing", EtcdMembers: true, ExtraHosts: 1})
	waitAvailable(ctx, cluster)
	expectWell(ctx, cluster)
	Expect(laboratory.Client().Create(ctx, healthCheckOfMasters(cluster))).To(Succeed())
	dead := state(ctx, cluster).Machines[0]
	Expect(cluster.MoveEtcdLeader(ctx, dead.Status.NodeRef.Name)).To(Succeed())
	writer := cluster.StartWriting(ctx)
	census := takeCensus(ctx, cluster)
	before()

	By("losing the host that leads etcd")
	patch(ctx, dead.Host, `{"metadata":{"annotations":{"capm3.metal3.io/unhealthy":"it is to be repaired"}}}`)
	rackHost(dead).PowerOff()
	loseNode(ctx, cluster, dead.Status.NodeRef.Name)
	expectReported(ctx, cluster, controlplanev1.RemediatingCondition, metav1.ConditionTrue, clusterv1.RemediatingReason)
	waitReplaced(ctx, cluster, dead)
	expectWell(ctx, cluster)

	Expect(census()).To(Equal(2), "voters, when they were fewest")
	expectNothingLost(ctx, cluster, writer)
	Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
	expectNothingLeft(ctx, cluster, dead)
	expectRemediated(ctx, cluster, dead)
}

// healthCheckOfMasters watches the control-plane Machines. Two that are unhealthy at once are for people.
func healthCheckOfMasters(cluster *lab.Cluster) *clusterv1.MachineHealthCheck {
	check := healthCheckOf(cluster)
	check.Spec.Selector.MatchLabels[clusterv1.MachineControlPlaneLabel] = ""
	check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(1))
	return check
}

// loseNode says that a Node is not heard of, as the node controller of the cluster does, as soon as its API server writes again.
func loseNode(ctx context.Context, cluster *lab.Cluster, name string) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	Eventually(ctx, func(g Gomega) {
		node := &corev1.Node{}
		g.Expect(workload.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].Status = corev1.ConditionUnknown
		}
		g.Expect(workload.Status().Update(ctx, node)).To(Succeed())
	}).Should(Succeed())
}

// expectRemediated checks the books: one Machine was replaced, by one that says so, and nothing else is to be done.
func expectRemediated(ctx context.Context, cluster *lab.Cluster, dead lab.Machine) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		s, err := cluster.State(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.ControlPlane.Annotations).NotTo(HaveKey(controlplanev1.RemediationInProgressAnnotation))
		g.Expect(lab.Condition(s.ControlPlane.Status.Conditions,
			controlplanev1.RemediatingCondition).Status).To(BeEquivalentTo(metav1.ConditionFalse))
		g.Expect(s.ControlPlane.Status.LastRemediation.Machine).To(Equal(dead.Name))
		var made int
		for _, m := range s.Machines {
			if _, found := m.Annotations[controlplanev1.RemediationForAnnotation]; found {
				made++
				g.Expect(m.Host.Name).NotTo(Equal(dead.Host.Name))
			}
		}
		g.Expect(made).To(Equal(1))
	}).Should(Succeed())
}
