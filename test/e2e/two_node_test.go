package e2e

import (
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Two nodes with fencing", Label("two-node"), func() {
	It("wait for an assisted-service with fencing, are installed, keep their hosts, and are deleted as a whole", func(ctx SpecContext) {
		onlySimulated() // the real service here is older than two-node clusters
		const namespace = "two-node"
		laboratory.Service.DisableFencing(namespace, true)
		cluster := apply(ctx, "two-node", lab.Mutations{Namespace: namespace, ClusterName: "twin", LightAPI: lightly()})

		By("being rejected by a service that was started without fencing")
		refused := wait(ctx, cluster, "rejected hosts", func(s *lab.State) bool {
			return len(s.Machines) == 2 && !slices.ContainsFunc(s.Machines, func(m lab.Machine) bool { return fencingRefused(m) == "" })
		})
		for _, m := range refused.Machines {
			Expect(fencingRefused(m)).To(And(ContainSubstring("TNF clusters support is disabled"), ContainSubstring("TNF_CLUSTERS_SUPPORT=true")))
			Expect(m.Agent.Spec.Approved).To(BeFalse())
			expectFencing(ctx, m)
		}
		laboratory.Service.DisableFencing(namespace, false)

		By("being installed")
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		infrastructure := &configv1.Infrastructure{}
		Expect(workloadOf(cluster).Get(ctx, types.NamespacedName{Name: "cluster"}, infrastructure)).To(Succeed())
		Expect(infrastructure.Status.ControlPlaneTopology).To(Equal(configv1.DualReplicaTopologyMode))
		machines := state(ctx, cluster).Machines
		for _, m := range machines {
			expectFencingRetired(ctx, m)
		}
		expectNoSecretsExposed(ctx, namespace)

		By("remaining two")
		scaled := controlPlaneOf(cluster)
		err := laboratory.Client().Patch(ctx, scaled, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":3}}`)))
		Expect(err).To(MatchError(ContainSubstring("with fencing replicas must be 2")))
		deleteMachines(ctx, cluster, machines[0])
		Expect(waitReason(ctx, cluster, controlplanev1.HostsReleasingCondition, controlplanev1.EtcdTopologyNotSupportedReason)).To(
			And(ContainSubstring("the host of Machine "+machines[0].Name+" is neither removed from etcd nor released"),
				ContainSubstring("spec.fencing")))
		Eventually(ctx, func() string {
			return deletingReason(ctx,
				machines[0])
		}).Should(Equal(clusterv1.MachineDeletingWaitingForPreTerminateHookReason))
		expectWaiting(ctx, cluster, machines[0])
		node := &corev1.Node{}
		Expect(workloadOf(cluster).Get(ctx, types.NamespacedName{Name: machines[0].Status.NodeRef.Name}, node)).To(Succeed())
		Expect(node.Spec.Unschedulable).To(BeFalse(), "one of two Nodes is neither cordoned nor drained")

		By("deleting all")
		expectDeleted(ctx, cluster)
		left := &corev1.SecretList{}
		Expect(laboratory.Client().List(ctx, left, client.InNamespace(namespace))).To(Succeed())
		for _, secret := range left.Items {
			Expect(secret.Data).NotTo(HaveKey("certificateVerification"), secret.Name)
		}
	}, NodeTimeout(installTimeout+deleteTimeout+2*soon))

	It("are rejected by an assisted-service without two-node clusters", func(ctx SpecContext) {
		if laboratory.Service != nil {
			Skip("the simulated assisted-service knows two nodes")
		}
		cluster := apply(ctx, "two-node", lab.Mutations{Namespace: "two-node-unknown", ClusterName: "unknown"})
		Expect(waitReason(ctx, cluster, controlplanev1.InstalledCondition,
			controlplanev1.InvalidConfigurationReason)).To(ContainSubstring("dedicated control plane nodes"))
	}, NodeTimeout(installTimeout))
})

// deletingReason returns the progress of Cluster API in the deletion of a Machine.
func deletingReason(ctx SpecContext, m lab.Machine) string {
	GinkgoHelper()
	found := &clusterv1.Machine{}
	Expect(laboratory.Client().Get(ctx, client.ObjectKeyFromObject(m.Machine), found)).To(Succeed())
	return conditions.GetReason(found, clusterv1.MachineDeletingCondition)
}

// fencingRefused returns the message of a Machine's config about settings that assisted-service rejects; empty:
// none yet.
func fencingRefused(m lab.Machine) string {
	if m.Config == nil || m.Agent == nil {
		return ""
	}
	for _, condition := range []string{bootstrapv1.HostBoundCondition, bootstrapv1.HostApprovedCondition} {
		if c := lab.Condition(m.Config.Status.Conditions, condition); c.Status == metav1.ConditionFalse &&
			strings.Contains(c.Message, "TNF clusters support is disabled") {
			return c.Message
		}
	}
	return ""
}

// fencedAt matches an address as the etcd operator of OpenShift parses it.
var fencedAt = regexp.MustCompile(`.*//(.*):(.*)(/redfish.*)`)

// expectFencingRetired checks that the copied credentials of the BMC of an installed host are deleted. The Secret
// stays: the Agent names it.
func expectFencingRetired(ctx SpecContext, m lab.Machine) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		secret := &corev1.Secret{}
		g.Expect(laboratory.Client().Get(ctx, types.NamespacedName{Namespace: m.Agent.Namespace, Name: m.Agent.Spec.FencingCredentialsSecretRef},
			secret)).To(Succeed())
		g.Expect(metav1.IsControlledBy(secret, m.Config)).To(BeTrue(), "it is deleted with the config")
		g.Expect(secret.Data).To(BeEmpty())
	}).Should(Succeed())
}

// expectFencing checks the copied credentials of the BMC for the Agent of a Machine.
func expectFencing(ctx SpecContext, m lab.Machine) {
	GinkgoHelper()
	secret := &corev1.Secret{}
	Expect(laboratory.Client().Get(ctx, types.NamespacedName{Namespace: m.Agent.Namespace, Name: m.Agent.Spec.FencingCredentialsSecretRef},
		secret)).To(Succeed())
	Expect(metav1.IsControlledBy(secret, m.Config)).To(BeTrue(), "it is deleted with the config")
	content := map[string]string{}
	for key, value := range secret.Data {
		content[key] = string(value)
	}
	Expect(content).To(HaveLen(4))
	Expect(content["address"]).To(MatchRegexp(fencedAt.String()))
	Expect(fencedAt.FindStringSubmatch(content["address"])[1:]).To(Equal([]string{
		"bmc.invalid", "443",
		"/redfish/v1/Systems/" + m.Agent.Name,
	}), "the address of the host")
	Expect(content).To(And(HaveKeyWithValue("username", "admin"), HaveKeyWithValue("password", hosts.BMCPassword),
		HaveKeyWithValue("certificateVerification", "Enabled")))
}
