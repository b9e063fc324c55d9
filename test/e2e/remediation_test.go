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
	It("replaces a master that is lost for ever, and loses no write", func(ctx SpecContext) {
		expectLostMasterReplaced(ctx, "remediation", func() {})
		Expect(events(ctx, "remediation", "MachineRemediated")).To(HaveLen(1))
	}, NodeTimeout(installTimeout+2*replaceTimeout))

	It("does so though the managers crash at each of their writes", Label("nightly"), func(ctx SpecContext) {
		var live func() int
		expectLostMasterReplaced(ctx, "mortal", func() { live = crashAtWrites(ctx, "mortal") })
		Expect(live()).To(BeNumerically(">", 20), "crashes")
	}, NodeTimeout(installTimeout+3*replaceTimeout))

	It("reboots a master first if a template requires that, and replaces it only if that does not help", Label("nightly"),
		func(ctx SpecContext) {
			onlySimulated()
			cluster := apply(ctx, "compact", lab.Mutations{Namespace: "reboot", ClusterName: "rebooted", EtcdMembers: true, ExtraHosts: 1})
			waitAvailable(ctx, cluster)
			expectHealthy(ctx, cluster)
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
			expectHealthy(ctx, cluster)
			for _, m := range before.Machines {
				Expect(has(state(ctx, cluster), m)).To(BeTrue(), "Machine %s is the same", m.Name)
			}
			Expect(events(ctx, cluster.Namespace, "MachineRemediated")).To(BeEmpty())

			By("losing it again, without help by a reboot")
			rackHost(hung).Hang()
			loseNode(ctx, cluster, hung.Status.NodeRef.Name)
			waitReplaced(ctx, cluster, hung)
			expectHealthy(ctx, cluster)
			Expect(len(rackHost(hung).Boots())).To(BeNumerically(">=", boots+2), "the host was rebooted first")
			expectNothingLost(ctx, cluster, writer)
			expectRemediated(ctx, cluster, hung)
		}, NodeTimeout(installTimeout+2*replaceTimeout))
})

func metal3Kind(kind string) schema.GroupVersionKind {
	return lab.Metal3MachineKind.GroupVersion().WithKind(kind)
}

// rebootTemplate makes CAPM3 reboot unhealthy hosts once, with its shortest timeout.
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

// expectLostMasterReplaced installs a cluster, calls before, loses the master that leads etcd, and expects that
// a MachineHealthCheck has it replaced.
func expectLostMasterReplaced(ctx context.Context, namespace string, before func()) {
	GinkgoHelper()
	onlySimulated()
	cluster := apply(ctx, "compact", lab.Mutations{Namespace: namespace, ClusterName: "healing", EtcdMembers: true, ExtraHosts: 1})
	waitAvailable(ctx, cluster)
	expectHealthy(ctx, cluster)
	Expect(laboratory.Client().Create(ctx, healthCheckOfMasters(cluster))).To(Succeed())
	dead := state(ctx, cluster).Machines[0]
	Expect(cluster.MoveEtcdLeader(ctx, dead.Status.NodeRef.Name)).To(Succeed())
	writer := cluster.StartWriting(ctx)
	fewestVoters := countVoters(ctx, cluster)
	before()

	By("losing the host that leads etcd")
	patch(ctx, dead.Host, `{"metadata":{"annotations":{"capm3.metal3.io/unhealthy":"the host is being repaired"}}}`)
	rackHost(dead).PowerOff()
	loseNode(ctx, cluster, dead.Status.NodeRef.Name)
	expectReported(ctx, cluster, controlplanev1.RemediatingCondition, metav1.ConditionTrue, clusterv1.RemediatingReason)
	waitReplaced(ctx, cluster, dead)
	expectHealthy(ctx, cluster)

	Expect(fewestVoters()).To(Equal(2), "the smallest number of voters")
	expectNothingLost(ctx, cluster, writer)
	Expect(cluster.WipedMembers()).To(BeEmpty(), "hosts whose disks were wiped while they voted")
	expectNothingLeft(ctx, cluster, dead)
	expectRemediated(ctx, cluster, dead)
}

// healthCheckOfMasters returns a MachineHealthCheck for the control-plane Machines. It does not remediate two
// unhealthy ones at once.
func healthCheckOfMasters(cluster *lab.Cluster) *clusterv1.MachineHealthCheck {
	check := healthCheckOf(cluster)
	check.Spec.Selector.MatchLabels[clusterv1.MachineControlPlaneLabel] = ""
	check.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = ptr.To(intstr.FromInt32(1))
	return check
}

// loseNode sets a Node's conditions to Unknown, as the node controller of the cluster does, once its API server
// accepts writes.
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

// expectRemediated checks the records of a remediation: one Machine replaced another and has its name, and no
// remediation is left.
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
