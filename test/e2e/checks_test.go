package e2e

import (
	"context"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// uuidLabel has the uid of the BareMetalHost on a Node; CAPM3 searches for it.
const uuidLabel = "metal3.io/uuid"

// expectInstalled checks all properties of an installed cluster. dayTwo is the number of workers that joined
// later. twice are the hosts that a test made boot the discovery system again.
func expectInstalled(ctx context.Context, cluster *lab.Cluster, dayTwo int, twice ...*hosts.Host) {
	GinkgoHelper()
	s := state(ctx, cluster)
	Expect(s.Available()).To(BeTrue(), "Cluster Available, all Machines Running")
	// Counters may be reported some seconds later if nothing else changes.
	Eventually(func(g Gomega) { expectControlPlane(g, state(ctx, cluster)) }).WithTimeout(soon / 2).Should(Succeed())
	expectInstallation(s, dayTwo)
	kubeconfigWorks(ctx, cluster, s)
	workload := workloadOf(cluster)
	nodes := &corev1.NodeList{}
	Expect(workload.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(s.Wanted), "one Node for each Machine")
	for _, m := range s.Machines {
		expectNode(ctx, workload, m)
		expectHost(m, twice...)
		expectAgent(m)
	}
	expectOnlyOurAgents(s)
}

func expectControlPlane(g Gomega, s *lab.State) {
	status := s.ControlPlane.Status
	g.Expect(status.Installation.Phase).To(Equal(controlplanev1.InstallationInstalled))
	g.Expect(status.Installation.Percentage).To(HaveValue(BeEquivalentTo(100)))
	g.Expect(status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
	g.Expect(status.Replicas).To(HaveValue(Equal(*s.ControlPlane.Spec.Replicas)))
	g.Expect(status.ReadyReplicas).To(HaveValue(Equal(*s.ControlPlane.Spec.Replicas)), strings.Join(s.Waiting(), "\n"))
	g.Expect(status.ReleaseImage).NotTo(BeEmpty())
	g.Expect(lab.Condition(status.Conditions, controlplanev1.AvailableCondition).Status).To(BeEquivalentTo("True"))
	g.Expect(s.Cluster.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
}

func expectInstallation(s *lab.State, dayTwo int) {
	GinkgoHelper()
	requirements := s.Installation.Spec.ProvisionRequirements
	Expect(requirements.ControlPlaneAgents+requirements.ArbiterAgents).To(BeEquivalentTo(*s.ControlPlane.Spec.Replicas),
		"masters and arbiters")
	Expect(requirements.WorkerAgents).To(BeEquivalentTo(s.Wanted-int(*s.ControlPlane.Spec.Replicas)-dayTwo), "workers of day 1")
}

// kubeconfigWorks checks that the published kubeconfig is the last one of assisted-service, with a token in
// place of its certificate, and that it works.
func kubeconfigWorks(ctx context.Context, cluster *lab.Cluster, s *lab.State) {
	GinkgoHelper()
	var kubeconfig []byte
	Eventually(func(g Gomega) { // the events of the token and of assisted-service's kubeconfig arrive in any order
		admin := &corev1.Secret{}
		g.Expect(laboratory.Client().Get(ctx, types.NamespacedName{
			Namespace: cluster.Namespace, Name: s.Installation.Spec.ClusterMetadata.AdminKubeconfigSecretRef.Name,
		}, admin)).To(Succeed())
		written, err := clientcmd.Load(admin.Data["kubeconfig"])
		g.Expect(err).NotTo(HaveOccurred())
		kubeconfig, err = cluster.Kubeconfig(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		published, err := clientcmd.Load(kubeconfig)
		g.Expect(err).NotTo(HaveOccurred())
		for _, user := range published.AuthInfos {
			g.Expect(user.Token).NotTo(BeEmpty())
			g.Expect(user.ClientKeyData).To(BeEmpty())
		}
		g.Expect(published.Clusters).To(Equal(written.Clusters))
		g.Expect(lab.Final(kubeconfig)).To(BeTrue(), "the kubeconfig of the installed cluster, not that of the installation")
	}).Should(Succeed())
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	Expect(config.Host).To(HaveSuffix(":%d", cluster.Server().Port))
	c, err := client.New(config, client.Options{Scheme: laboratory.Env.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.List(ctx, &corev1.NodeList{})).To(Succeed())
}

func expectNode(ctx context.Context, workload client.Client, m lab.Machine) {
	GinkgoHelper()
	node := nodeOf(ctx, workload, m)
	Expect(m.Host).NotTo(BeNil(), "Machine %s has a host", m.Name)
	Expect(node.Name).To(Equal(m.Host.Name))
	Expect(node.Labels).To(HaveKeyWithValue(uuidLabel, string(m.Host.UID)))
	Expect(node.Spec.ProviderID).To(Equal(m.Spec.ProviderID))
	infraID, _, err := unstructured.NestedString(m.Infra.Object, "spec", "providerID")
	Expect(err).NotTo(HaveOccurred())
	Expect(infraID).To(Equal(m.Spec.ProviderID))
	Expect(node.Labels).To(HaveKey("node-role.kubernetes.io/" + m.Role()))
	if m.Role() != "master" {
		Expect(node.Labels).NotTo(HaveKey("node-role.kubernetes.io/master"))
	}
}

func nodeOf(ctx context.Context, workload client.Client, m lab.Machine) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(workload.Get(ctx, types.NamespacedName{Name: m.Status.NodeRef.Name}, node)).To(Succeed())
	return node
}

// expectHost checks that the host booted the discovery system and then its installed node, and nothing else.
// Each occurrence in twice allows one more boot of the discovery system.
func expectHost(m lab.Machine, twice ...*hosts.Host) {
	GinkgoHelper()
	host := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name))
	Expect(host).NotTo(BeNil())
	wanted := []any{hosts.Discovery, hosts.Installed}
	for _, again := range twice {
		if again == host {
			wanted = append([]any{hosts.Discovery}, wanted...)
		}
	}
	booted := func(boot hosts.Boot) hosts.System { return boot.System }
	for i, system := range wanted {
		wanted[i] = WithTransform(booted, Equal(system))
	}
	Expect(host.Boots()).To(HaveExactElements(wanted...), "boots of host %s", host.Name())
	Expect(host.Losses()).To(BeEmpty())
}

func expectAgent(m lab.Machine) {
	GinkgoHelper()
	Expect(m.Agent).NotTo(BeNil(), "Machine %s has an Agent", m.Name)
	Expect(m.Agent.Spec.Approved).To(BeTrue())
	Expect(m.Agent.Spec.Hostname).To(Equal(m.Host.Name))
	Expect(m.Agent.Spec.Role).To(BeEquivalentTo(m.Role()))
	Expect(m.Agent.Status.Role).To(BeEquivalentTo(m.Role()))
	Expect(m.Agent.Spec.ClusterDeploymentName).NotTo(BeNil())
	Expect(m.Agent.Spec.ClusterDeploymentName.Name).To(Equal(m.Labels[clusterv1.ClusterNameLabel]))
	hardware := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name)).Hardware()
	Expect(m.Agent.Name).To(Equal(hardware.UUID))
	if id := m.Agent.Spec.InstallationDiskID; id != "" {
		_, found := hardware.Disk(id)
		Expect(found).To(BeTrue(), "disk %s is one of the host's", id)
	}
}

// expectOnlyOurAgents checks that only the hosts of Machines have approved or bound Agents.
func expectOnlyOurAgents(s *lab.State) {
	GinkgoHelper()
	ours := map[string]bool{}
	for _, m := range s.Machines {
		if m.Agent != nil {
			ours[m.Agent.Name] = true
		}
	}
	for _, agent := range s.Agents {
		if !ours[agent.Name] {
			Expect(agent.Spec.Approved).To(BeFalse(), "Agent %s, which is not ours", agent.Name)
			Expect(agent.Spec.ClusterDeploymentName).To(BeNil(), "Agent %s, which is not ours", agent.Name)
		}
	}
}
