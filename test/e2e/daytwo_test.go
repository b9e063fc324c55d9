package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Workers", Label("workers"), func() {
	It("join when the cluster accepts hosts, whether they appear during the installation or after", func(ctx SpecContext) {
		cluster := apply(ctx, "ha", lab.Mutations{Namespace: "workers", ClusterName: "grow", ExtraHosts: 2, HoldAPI: true})
		wait(ctx, cluster, "installing", installing)

		By("adding one during the installation: it is discovered, and waits")
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		s := wait(ctx, cluster, "keeping the new worker waiting", func(s *lab.State) bool {
			return configHas(s, bootstrapv1.ClusterNotAcceptingHostsReason)
		})
		late := machineWith(s, bootstrapv1.ClusterNotAcceptingHostsReason)
		Expect(late.Agent).NotTo(BeNil(), "the host is known")
		Expect(late.Agent.Spec.ClusterDeploymentName).To(BeNil())
		Expect(late.Agent.Spec.Approved).To(BeFalse())
		Expect(lab.Condition(late.Config.Status.Conditions, bootstrapv1.ReadyCondition).Message).To(ContainSubstring("accept"))
		Expect(s.Installation.Spec.ProvisionRequirements.WorkerAgents).To(Equal(2), "it does not belong to day 1")

		By("letting the installation end")
		cluster.ReleaseAPI()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 1)

		By("revoking the hub's token in the cluster: another is published, though the connection was made with the certificate")
		revokeTokens(ctx, cluster)
		kubeconfigWorks(ctx, cluster, state(ctx, cluster))
		Expect(tokenSecrets(ctx, cluster)).To(HaveLen(1), "one for the one that was revoked")

		By("adding one afterwards")
		Expect(cluster.Scale(ctx, 4)).To(Succeed())
		wait(ctx, cluster, "complete", func(s *lab.State) bool { return s.Wanted == 7 && s.Available() })
		expectInstalled(ctx, cluster, 2)

		By("removing one: its Node and its Agent go")
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		wait(ctx, cluster, "smaller", func(s *lab.State) bool { return len(s.Machines) == 6 && len(s.Agents) == 6 && s.Available() })
		expectInstalled(ctx, cluster, 1)
	}, NodeTimeout(3*installTimeout))
})

// tokenSecrets are the Secrets in the installed cluster to which the hub's tokens are bound.
func tokenSecrets(ctx context.Context, cluster *lab.Cluster) []corev1.Secret {
	GinkgoHelper()
	workload, err := cluster.Workload()
	Expect(err).NotTo(HaveOccurred())
	list := &corev1.SecretList{}
	Expect(workload.List(ctx, list, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{"app.kubernetes.io/managed-by": "cluster-api-provider-openshift-agent"})).To(Succeed())
	return list.Items
}

// revokeTokens ends the hub's tokens, and waits until the API server does not take the published one any more and there is another.
func revokeTokens(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	var revoked []byte
	var config *rest.Config
	Eventually(func(g Gomega) {
		var err error
		revoked, err = cluster.Kubeconfig(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		config, err = clientcmd.RESTConfigFromKubeConfig(revoked)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.BearerToken).NotTo(BeEmpty())
	}).Should(Succeed())
	workload, err := cluster.Workload()
	Expect(err).NotTo(HaveOccurred())
	for _, bound := range tokenSecrets(ctx, cluster) {
		Expect(workload.Delete(ctx, &bound)).To(Succeed())
	}
	Eventually(func() error {
		c, err := client.New(config, client.Options{})
		if err == nil {
			err = c.List(ctx, &corev1.NodeList{})
		}
		return err
	}).Should(MatchError(apierrors.IsUnauthorized, "unauthorized"))
	Eventually(func() []byte {
		published, err := cluster.Kubeconfig(ctx)
		Expect(err).NotTo(HaveOccurred())
		return published
	}).ShouldNot(Equal(revoked))
}

// installing is true once hosts are being written.
func installing(s *lab.State) bool {
	return s.ControlPlane != nil && s.ControlPlane.Status.Installation.Phase == controlplanev1.InstallationInstalling
}

// machineWith returns the first Machine whose config has the reason.
func machineWith(s *lab.State, reason string) lab.Machine {
	GinkgoHelper()
	for _, m := range s.Machines {
		if m.Config != nil && lab.Condition(m.Config.Status.Conditions, bootstrapv1.ReadyCondition).Reason == reason {
			return m
		}
	}
	Fail("no Machine has " + reason)
	return lab.Machine{}
}
