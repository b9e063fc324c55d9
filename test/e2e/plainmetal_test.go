package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/plainmetal"
	plainmetalv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/plainmetal/api/v1beta1"
)

var _ = Describe("An infrastructure provider without BareMetalHosts", Label("infrastructure", "nightly"), func() {
	It("boots disk images with user data: a node and a worker are installed, a foreign server is refused, and all is deleted",
		func(ctx SpecContext) {
			servers := []hosts.Hardware{hosts.NewHardware("plain-0"), hosts.NewHardware("plain-1")}
			startPlainMetal(ctx, servers)
			cluster, err := laboratory.ApplyManifests(ctx, exampleOf("operations/other-infrastructure.md"), lab.Mutations{
				Namespace: "plain", ClusterName: "edge", ExtraHosts: -len(servers), HoldAPI: true, LightAPI: lightly(),
			})
			Expect(err).NotTo(HaveOccurred())
			adopt(cluster)
			Expect(cluster.Hosts).To(BeEmpty(), "BareMetalHosts")

			By("blocking the worker, whose host is discovered while the node is being installed")
			s := wait(ctx, cluster, "blocking the worker",
				func(s *lab.State) bool { return configHas(s, bootstrapv1.ClusterNotAcceptingHostsReason) })
			worker := machineWith(s, bootstrapv1.ClusterNotAcceptingHostsReason)

			By("refusing both when another server boots the same image")
			stranger, err := laboratory.Rack.BootUnmanaged(imageOf(s, &worker), hosts.NewHardware("plain-stranger"))
			Expect(err).NotTo(HaveOccurred())
			s = wait(ctx, cluster, "refusing two hosts", func(s *lab.State) bool { return refusedMachine(s) != nil })
			refused := refusedMachine(s)
			Expect(refused.Name).To(Equal(worker.Name))
			identified := lab.Condition(refused.Config.Status.Conditions, bootstrapv1.HostIdentifiedCondition)
			Expect(identified.Message).To(And(ContainSubstring(worker.Agent.Name), ContainSubstring(stranger.Hardware().UUID),
				ContainSubstring("Delete the Agents of the other servers")))
			cluster.ReleaseAPI()
			wait(ctx, cluster, "installed but for the worker", func(s *lab.State) bool {
				return s.Running() == 1 && s.Installation.Status.DebugInfo.State == "adding-hosts"
			})
			Consistently(ctx, func(g Gomega) {
				agents := agentsOf(state(ctx, cluster), worker)
				g.Expect(agents).To(HaveLen(2))
				for _, agent := range agents {
					g.Expect(agent.Spec.Approved).To(BeFalse(), agent.Name)
					g.Expect(agent.Spec.ClusterDeploymentName).To(BeNil(), agent.Name)
				}
			}).WithTimeout(quiet).Should(Succeed(), "the cluster accepts hosts, but not these")

			By("installing the worker after the deletion of the foreign Agent")
			stranger.PowerOff()
			Expect(laboratory.Client().Delete(ctx,
				&aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: stranger.Hardware().UUID}})).To(Succeed())
			waitAvailable(ctx, cluster)
			expectPlainMetal(ctx, cluster, servers)
			Expect(downloads(cluster)).To(BeNumerically("<", 2*len(servers)),
				"downloads of discovery Ignition configs, one for each server if nothing changes")

			By("removing the worker: its Node and its Agent are deleted, and its server is wiped")
			workload := workloadOf(cluster)
			removed := machineNamed(state(ctx, cluster), worker.Name)
			node := nodeOf(ctx, workload, removed)
			Expect(cluster.Scale(ctx, 0)).To(Succeed())
			wait(ctx, cluster, "without its worker", func(s *lab.State) bool { return len(s.Machines) == 1 && len(s.Agents) == 1 })
			Expect(workload.Get(ctx, keyOf(node), &corev1.Node{})).To(MatchError(apierrors.IsNotFound, "gone"))
			Expect(serverOf(removed).PoweredOn()).To(BeFalse())
			Expect(serverOf(removed).Losses()).To(HaveLen(1))

			By("deleting the cluster")
			expectDeleted(ctx, cluster)
			for _, kind := range []string{"PlainMetalCluster", "PlainMetalMachine"} {
				Expect(listAll(ctx, plainmetalv1.GroupVersion.WithKind(kind), cluster.Namespace)).To(BeEmpty(), kind)
			}
			for _, server := range servers {
				Expect(laboratory.Rack.Host(server.Name).PoweredOn()).To(BeFalse(), server.Name)
			}
		}, NodeTimeout(3*installTimeout))
})

// startPlainMetal runs the provider until the spec ends.
func startPlainMetal(ctx context.Context, servers []hosts.Hardware) {
	GinkgoHelper()
	Expect(plainmetal.Install(ctx, laboratory.Client())).To(Succeed())
	provider, err := plainmetal.New(laboratory.Env.Config(), plainmetal.Options{Rack: laboratory.Rack, Servers: servers})
	Expect(err).NotTo(HaveOccurred())
	life, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- provider.Start(life) }()
	DeferCleanup(func() {
		end()
		Eventually(ended).Should(Receive(Succeed()))
	})
}

// exampleOf returns the example manifests in a document.
func exampleOf(document string) []byte {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", document))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile("(?ms)^```yaml\n(apiVersion: .*?)^```$").FindAllSubmatch(content, -1)
	Expect(found).To(HaveLen(1), "examples in %s", document)
	return found[0][1]
}

// agentsOf returns the Agents that booted the image of a Machine.
func agentsOf(s *lab.State, m lab.Machine) []aiv1beta1.Agent {
	return slices.DeleteFunc(slices.Clone(s.Agents),
		func(agent aiv1beta1.Agent) bool { return agent.Labels[aiv1beta1.InfraEnvNameLabel] != m.Name })
}

// serverOf returns the server of a Machine.
func serverOf(m lab.Machine) *hosts.Host {
	for _, host := range laboratory.Rack.Hosts() {
		if plainmetal.ProviderIDPrefix+host.Hardware().UUID == m.Spec.ProviderID {
			return host
		}
	}
	return nil
}

// expectPlainMetal checks a single node and its worker. Cluster API knows only the providerIDs and addresses of
// their servers.
func expectPlainMetal(ctx context.Context, cluster *lab.Cluster, servers []hosts.Hardware) {
	GinkgoHelper()
	s := state(ctx, cluster)
	Eventually(func(g Gomega) { expectControlPlane(g, state(ctx, cluster)) }).WithTimeout(soon / 2).Should(Succeed())
	kubeconfigWorks(ctx, cluster, s)
	expectOnlyOurAgents(s)
	workload := workloadOf(cluster)
	nodes := &corev1.NodeList{}
	Expect(workload.List(ctx, nodes)).To(Succeed())
	Expect(nodes.Items).To(HaveLen(len(servers)), "one Node for each server")
	for _, m := range s.Machines {
		Expect(m.Spec.ProviderID).To(HavePrefix(plainmetal.ProviderIDPrefix))
		Expect(nodeOf(ctx, workload, m).Spec.ProviderID).To(Equal(m.Spec.ProviderID))
		server := serverOf(m)
		Expect(server).NotTo(BeNil())
		Expect(m.Agent.Name).To(Equal(server.Hardware().UUID))
		Expect(m.Status.Addresses).To(ContainElement(HaveField("Type", clusterv1.MachineInternalIP)))
		Expect(m.Config.Status.BootMode).To(Equal(bootstrapv1.BootModeDiskImage))
		Expect(lab.Condition(m.Config.Status.Conditions, bootstrapv1.HostAvailableCondition).Status).To(BeEmpty(),
			"no BareMetalHosts exist to report on")
		boots := server.Boots()
		Expect(boots[0].System).To(Equal(hosts.Discovery))
		Expect(boots[0].Source).To(HavePrefix("disk image "))
		Expect(boots[len(boots)-1].System).To(Equal(hosts.Installed))
		Expect(server.Losses()).To(BeEmpty())
	}
}
