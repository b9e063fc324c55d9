package e2e

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/noderefutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

var _ = Describe("Workers", Label("workers"), func() {
	It("join when the cluster accepts hosts, whether they appear during the installation or after", func(ctx SpecContext) {
		var away atomic.Bool
		// Without replicas the sample counts as one worker: one more host is needed.
		cluster := apply(ctx, "ha", lab.Mutations{
			Namespace: "workers", ClusterName: "grow", ExtraHosts: 3, HoldAPI: true,
			Edit: edits(autoscaled, pooled), Divert: blockService(&away),
		})
		wait(ctx, cluster, "installing", installing)

		By("adding one during the installation: it is discovered and waits")
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		s := wait(ctx, cluster, "blocking the new worker", func(s *lab.State) bool {
			return configHas(s, bootstrapv1.ClusterNotAcceptingHostsReason)
		})
		late := machineWith(s, bootstrapv1.ClusterNotAcceptingHostsReason)
		Expect(late.Agent).NotTo(BeNil(), "the host is discovered")
		Expect(late.Agent.Spec.ClusterDeploymentName).To(BeNil())
		Expect(late.Agent.Spec.Approved).To(BeFalse())
		Expect(lab.Condition(late.Config.Status.Conditions, bootstrapv1.ReadyCondition).Message).To(ContainSubstring("accept"))
		Expect(s.Installation.Spec.ProvisionRequirements.WorkerAgents).To(Equal(2), "the worker does not belong to day 1")

		By("finishing the installation")
		cluster.ReleaseAPI()
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 1)

		By("revoking the hub's token in the cluster: another is published, though the connection uses the certificate")
		revokeTokens(ctx, cluster)
		kubeconfigWorks(ctx, cluster, state(ctx, cluster))
		Expect(tokenSecrets(ctx, cluster)).To(HaveLen(1), "one replaces the revoked one")

		By("adding one afterwards, without approvals of certificates by assisted-service")
		if laboratory.Service != nil {
			laboratory.Service.LeaveCertificates(cluster.Key())
		}
		Expect(cluster.Scale(ctx, 4)).To(Succeed())
		wait(ctx, cluster, "complete", func(s *lab.State) bool { return s.Wanted == 7 && s.Available() })
		expectInstalled(ctx, cluster, 2)
		expectPool(ctx, cluster)
		expectServerCA(ctx, cluster, late.Name)

		By("switching a host off until its certificates have expired: it joins again")
		restartExpired(ctx, cluster, late.Name)

		By("removing the one that the autoscaler chose, while another waits for a host and assisted-service cannot reach the cluster")
		removed := machineNamed(state(ctx, cluster), late.Name)
		workload := workloadOf(cluster)
		node := nodeOf(ctx, workload, removed)
		Expect(cluster.Scale(ctx, 5)).To(Succeed())
		wait(ctx, cluster, "short of hosts", func(s *lab.State) bool { return len(s.Machines) == 8 })
		release := blockDeletion(ctx, removed.Config)
		away.Store(true)
		patch(ctx, removed.DeepCopy(), `{"metadata":{"annotations":{"`+clusterv1.DeleteMachineAnnotation+`":"true"}}}`)
		Expect(cluster.Scale(ctx, 4)).To(Succeed())

		By("giving its host to the other while its Machine still exists: its former Agent, which would make assisted-service " +
			"lose the host, is deleted, and its name is used only after the deletion of that Machine")
		s = wait(ctx, cluster, "blocking the host until its name is free",
			func(s *lab.State) bool { return configHas(s, bootstrapv1.NodeNameTakenReason) })
		next := machineWith(s, bootstrapv1.NodeNameTakenReason)
		Expect(next.Agent.Name).To(Equal(removed.Agent.Name), "the host is the same")
		Expect(next.Agent.UID).NotTo(Equal(removed.Agent.UID))
		Expect(next.Agent.Spec).To(Equal(aiv1beta1.AgentSpec{}))
		Expect(workload.Get(ctx, keyOf(node), &corev1.Node{})).To(Succeed(), "assisted-service cannot remove it")
		away.Store(false)
		release()
		wait(ctx, cluster, "complete again", func(s *lab.State) bool { return s.Wanted == 7 && s.Available() })
		next = machineNamed(state(ctx, cluster), next.Name)
		expectNode(ctx, workload, next)
		expectAgent(next)
		Expect(nodeOf(ctx, workload, next).Name).To(Equal(node.Name))
		Expect(nodeOf(ctx, workload, next).UID).NotTo(Equal(node.UID))

		By("removing it again: its Node is deleted with its Agent, before Cluster API deletes it")
		release = blockDeletion(ctx, next.Config)
		patch(ctx, next.DeepCopy(), `{"metadata":{"annotations":{"`+clusterv1.DeleteMachineAnnotation+`":"true"}}}`)
		Expect(cluster.Scale(ctx, 3)).To(Succeed())
		Eventually(ctx, func() error {
			return workload.Get(ctx, keyOf(node),
				&corev1.Node{})
		}).WithTimeout(soon).Should(MatchError(apierrors.IsNotFound, "deleted"))
		release()
		wait(ctx, cluster, "complete without it", func(s *lab.State) bool { return s.Wanted == 6 && len(s.Machines) == 6 && s.Available() })
	}, NodeTimeout(3*installTimeout))
})

// blockService makes the API of a cluster unreachable for assisted-service, and for no other client, while
// away is set.
func blockService(away *atomic.Bool) env.Pass {
	return func(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
		if away.Load() && strings.HasPrefix(r.UserAgent(), "assisted-service") {
			http.Error(rw, "not for assisted-service", http.StatusServiceUnavailable)
			return
		}
		faultproxy.Forward(transport, target).ServeHTTP(rw, r)
	}
}

// autoscaled lets the cluster autoscaler set the number of workers.
func autoscaled(object *unstructured.Unstructured) {
	GinkgoHelper()
	edits(
		edit("MachineDeployment", nil, "spec", "replicas"),
		edit("MachineDeployment", "2", "metadata", "annotations", clusterv1.AutoscalerMinSizeAnnotation),
		edit("MachineDeployment", "4", "metadata", "annotations", clusterv1.AutoscalerMaxSizeAnnotation),
	)(object)
}

// pool is the MachineConfigPool of the workers.
const pool = "infra"

// pooled adds the workers to the pool.
func pooled(object *unstructured.Unstructured) {
	GinkgoHelper()
	edit("OpenshiftAssistedConfigTemplate", pool, "spec", "template", "spec", "machineConfigPool")(object)
}

// expectPool checks that workers of day 1 and later were installed as members of their pool, and that it selects
// their Nodes.
func expectPool(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	for _, m := range state(ctx, cluster).Machines {
		wanted, selected := pool, HaveKey("node-role.kubernetes.io/"+pool)
		if m.IsControlPlane() {
			wanted, selected = "", Not(selected)
		}
		Expect(m.Agent.Spec.MachineConfigPool).To(Equal(wanted))
		// The pool selects a Node after its start.
		Eventually(ctx, func() map[string]string { return nodeOf(ctx, workload, m).Labels }).WithTimeout(soon).Should(selected,
			"Machine %s", m.Name)
	}
}

// expectServerCA checks that only a worker that joined the installed cluster has the CA certificates of the
// machine config server. Without joining hosts no copy may be left. A worker that joined at the end of the
// installation may have them or not.
func expectServerCA(ctx context.Context, cluster *lab.Cluster, either string) {
	GinkgoHelper()
	ca := &corev1.ConfigMap{}
	Expect(workloadOf(cluster).Get(ctx, client.ObjectKey{Namespace: "openshift-machine-config-operator", Name: "machine-config-server-ca"},
		ca)).To(Succeed())
	var authorities []string
	for _, m := range state(ctx, cluster).Machines {
		ignition, err := hosts.DecodeIgnition([]byte(m.Agent.Spec.IgnitionConfigOverrides))
		Expect(err).NotTo(HaveOccurred())
		if m.Name != either {
			authorities = append(authorities, ignition.Authorities...)
		}
	}
	Expect(authorities).To(Equal([]string{ca.Data["ca-bundle.crt"]}))
	Eventually(ctx, func() map[string]string {
		return state(ctx,
			cluster).Installation.Annotations
	}).WithTimeout(soon).ShouldNot(HaveKey(bootstrapv1.MachineConfigServerCAAnnotation))
}

// restartExpired switches the host of a Machine off, and on again after the expiry of its certificates.
func restartExpired(ctx context.Context, cluster *lab.Cluster, machine string) {
	GinkgoHelper()
	workload := workloadOf(cluster)
	m := machineNamed(state(ctx, cluster), machine)
	ready := func() corev1.ConditionStatus { return readiness(nodeOf(ctx, workload, m)) }
	host := rackHost(m)
	host.PowerOff()
	host.ExpireCertificates()
	Eventually(ctx, ready).WithTimeout(soon).Should(Equal(corev1.ConditionUnknown))
	host.PowerOn()
	Eventually(ctx, ready).WithTimeout(soon).Should(Equal(corev1.ConditionTrue))
	Eventually(ctx, func(g Gomega) {
		requests := &certificatesv1.CertificateSigningRequestList{}
		g.Expect(workload.List(ctx, requests)).To(Succeed())
		g.Expect(requests.Items).NotTo(BeEmpty())
		for i := range requests.Items {
			g.Expect(requests.Items[i].Status.Conditions).To(HaveExactElements(HaveField("Type", certificatesv1.CertificateApproved)),
				requests.Items[i].Name)
		}
	}).WithTimeout(soon).Should(Succeed(), "including serving certificates, for which kubelets do not wait")
}

// readiness is the status of the condition Ready of a Node.
func readiness(node *corev1.Node) corev1.ConditionStatus {
	if c := noderefutil.GetReadyCondition(&node.Status); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

// blockDeletion blocks the deletion of an object until it is released.
func blockDeletion(ctx context.Context, object client.Object) (release func()) {
	GinkgoHelper()
	const finalizer = "e2e.example.com/hold"
	change := func(change func(client.Object, string) bool) {
		GinkgoHelper()
		Eventually(ctx, func(g Gomega) { // other clients write to it as well
			g.Expect(laboratory.Client().Get(ctx, keyOf(object), object)).To(Succeed())
			before, ok := object.DeepCopyObject().(client.Object)
			g.Expect(ok).To(BeTrue())
			change(object, finalizer)
			g.Expect(laboratory.Client().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
		}).Should(Succeed())
	}
	change(controllerutil.AddFinalizer)
	return func() { change(controllerutil.RemoveFinalizer) }
}

// machineNamed returns the Machine of the name.
func machineNamed(s *lab.State, name string) lab.Machine {
	GinkgoHelper()
	for _, m := range s.Machines {
		if m.Name == name {
			return m
		}
	}
	Fail("no Machine is named " + name)
	return lab.Machine{}
}

// tokenSecrets returns the Secrets in the installed cluster to which the hub's tokens are bound.
func tokenSecrets(ctx context.Context, cluster *lab.Cluster) []corev1.Secret {
	GinkgoHelper()
	workload := workloadOf(cluster)
	list := &corev1.SecretList{}
	Expect(workload.List(ctx, list, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{"app.kubernetes.io/managed-by": "cluster-api-provider-openshift-agent"})).To(Succeed())
	return list.Items
}

// revokeTokens revokes the hub's tokens, and waits until the API server rejects the published one and another is
// published.
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
	workload := workloadOf(cluster)
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

// installing reports whether hosts are being written.
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
