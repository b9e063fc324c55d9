package e2e

import (
	"context"
	"maps"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/argocd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// installedSample is a sample with its expectations after the installation.
type installedSample struct {
	machines int
	// on is the assisted-service that installs the sample with each change; empty: both. Nightly runs use both.
	on lab.Backend
	// lacks is what the real assisted-service (April 2025) lacks for the sample; empty: nothing.
	lacks string
	// verify checks the special properties of the sample.
	verify func(ctx context.Context, cluster *lab.Cluster)
}

// everySample are the samples that are installed for every change, by one assisted-service or both,
// furtherSamples those that are installed once a day. The latter only pass settings to assisted-service, which
// unit tests cover. A test of config checks that each sample is in one of them.
var (
	everySample = map[string]installedSample{
		"ha": {machines: 5, on: lab.Simulated}, "compact": {machines: 3, on: lab.Simulated}, "sno": {machines: 1},
		"ha-disk-image": {machines: 5, on: lab.Real},
		"okd":           {machines: 5, on: lab.Real}, "dual-stack": {machines: 3, on: lab.Real, verify: expectDualStack},
	}
	furtherSamples = map[string]installedSample{
		"arbiter":             {machines: 3, lacks: "arbiters"}, // its own spec installs it, too
		"argocd":              {machines: 1, verify: expectWaves},
		"arm64":               {machines: 3, verify: expectArchitectures("arm64", "arm64", "arm64")},
		"clusterclass":        {machines: 5}, // its own spec creates a cluster of the class for every change
		"disconnected":        {machines: 3, lacks: "mirrors", verify: expectMirrored},
		"health-checks":       {machines: 5, verify: expectChecked},
		"mixed-architectures": {machines: 4, verify: expectArchitectures("amd64", "amd64", "amd64", "arm64")},
		"proxy":               {machines: 3, verify: expectProxied},
		"static-network":      {machines: 3, lacks: "nmstate", verify: expectStatic},
		"third-party-cni":     {machines: 3, verify: expectThirdPartyNetwork},
		"two-node":            {machines: 2, lacks: "fencing"}, // its own spec installs it for every change, too
		"user-load-balancer":  {machines: 3, verify: expectUserManagedLoadBalancer},
	}
)

// installable returns the samples that the assisted-service of this run installs: with LONG=1 all that it can.
func installable(samples map[string]installedSample) map[string]installedSample {
	backend, _ := lab.ParseBackend("assisted-service", os.Getenv(backendVariable)) // the suite fails without a valid one
	chosen := maps.Clone(samples)
	maps.DeleteFunc(chosen, func(_ string, s installedSample) bool {
		return backend == lab.Real && s.lacks != "" || os.Getenv(longVariable) == "" && s.on != "" && s.on != backend
	})
	return chosen
}

// samplesOf installs samples at the same time, and checks each of them.
func samplesOf(wanted map[string]installedSample) map[string]*lab.Cluster {
	clusters := map[string]*lab.Cluster{}
	BeforeAll(func(ctx SpecContext) {
		for sample := range wanted {
			clusters[sample] = apply(ctx, sample, lab.Mutations{Namespace: "sample-" + sample, Audit: true})
		}
		for _, cluster := range clusters {
			waitAvailable(ctx, cluster)
		}
	}, NodeTimeout(2*installTimeout))
	for sample, expected := range wanted {
		It("install: "+sample, func(ctx SpecContext) {
			cluster := clusters[sample]
			Expect(state(ctx, cluster).Wanted).To(Equal(expected.machines))
			expectInstalled(ctx, cluster, 0)
			expectNoProblem(ctx, cluster)
			if expected.verify != nil {
				expected.verify(ctx, cluster)
			}
		}, NodeTimeout(2*soon))
	}
	It("are progressing for Argo CD until they are installed, and never degraded", func() {
		for _, cluster := range clusters {
			for _, kind := range []string{"Cluster", "OpenshiftAssistedControlPlane", "AgentClusterInstall"} {
				// The checks run on watched objects, which may be older than the state that the laboratory has
				// read.
				Eventually(func() []argocd.Health { return health.ofObject(kind, cluster.Key()) }).Should(ContainElement(withStatus(argocd.Healthy)),
					"%s %s", kind, cluster.Key())
				seen := health.ofObject(kind, cluster.Key())
				Expect(seen).To(HaveEach(Or(withStatus(argocd.Progressing), withStatus(argocd.Healthy))), "%s %s", kind, cluster.Key())
				Expect(seen[0]).To(withStatus(argocd.Progressing), "%s %s", kind, cluster.Key())
			}
		}
	})
	It("do not differ from the manifests that Argo CD would apply again", func(ctx SpecContext) {
		for _, cluster := range clusters {
			Expect(cluster.Drift(ctx, "argocd-controller")).To(BeEmpty(), "of %s", cluster.Key())
		}
	}, NodeTimeout(soon))
	return clusters
}

// The samples are installed at the same time, checked, observed while idle, and deleted.
var _ = Describe("Samples", Ordered, Label("samples", independent), func() {
	var before int
	BeforeAll(func() { before = len(laboratory.Registry.Lookups()) })
	clusters := samplesOf(installable(everySample))

	It("are collected in archives without credentials", func(ctx SpecContext) {
		expectGathered(ctx, clusters["sno"])
	}, NodeTimeout(soon))

	It("query the registry once for each release", func() {
		seen := map[string]bool{}
		for _, lookup := range laboratory.Registry.Lookups()[before:] {
			Expect(seen).NotTo(HaveKey(lookup), "queried again")
			seen[lookup] = true
		}
		Expect(len(seen)).To(BeNumerically("<=", 2), "one OpenShift and one OKD release in all clusters")
	})

	It("send no more requests to the API servers and assisted-service than necessary", func() {
		if clusters["ha"] == nil {
			Skip("needs the simulated assisted-service")
		}
		expectFewRequests(clusters["ha"])
	})

	It("cause no requests when they are installed and idle", Label("idle"), func(ctx SpecContext) {
		expectIdle(ctx, slices.Collect(maps.Values(clusters))...)
	}, NodeTimeout(4*soon))

	It("leave nothing behind when they are deleted", func(ctx SpecContext) {
		left := clusters["sno"]
		delete(clusters, "sno")
		expectDeleted(ctx, slices.Collect(maps.Values(clusters))...)
		expectUnchanged(ctx, left)
	}, NodeTimeout(deleteTimeout+soon))
})

var _ = Describe("Further samples", Ordered, Label("samples", "nightly"), func() {
	clusters := samplesOf(installable(furtherSamples))

	It("leave nothing behind when they are deleted", func(ctx SpecContext) {
		expectDeleted(ctx, slices.Collect(maps.Values(clusters))...)
	}, NodeTimeout(deleteTimeout+soon))
})

// expectDualStack checks that all lists of addresses have both families.
func expectDualStack(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	spec := state(ctx, cluster).Installation.Spec
	networks := []string{}
	for _, network := range spec.Networking.ClusterNetwork {
		networks = append(networks, network.CIDR)
	}
	machines := []string{}
	for _, network := range spec.Networking.MachineNetwork {
		machines = append(machines, network.CIDR)
	}
	for what, of := range map[string][]string{
		"apiVIPs": spec.APIVIPs, "ingressVIPs": spec.IngressVIPs, "clusterNetwork": networks,
		"serviceNetwork": spec.Networking.ServiceNetwork, "machineNetwork": machines,
	} {
		Expect(families(of)).To(Equal([]string{"IPv4", "IPv6"}), what)
	}
	for _, node := range nodesOf(ctx, cluster) {
		Expect(families(internalAddresses(node))).To(Equal([]string{"IPv4", "IPv6"}), "of Node %s", node.Name)
	}
}

// families returns the family of each address or network.
func families(addresses []string) []string {
	GinkgoHelper()
	var found []string
	for _, text := range addresses {
		address, _, _ := strings.Cut(text, "/")
		parsed, err := netip.ParseAddr(address)
		Expect(err).NotTo(HaveOccurred())
		if parsed.Is4() {
			found = append(found, "IPv4")
		} else {
			found = append(found, "IPv6")
		}
	}
	return found
}

func nodesOf(ctx context.Context, cluster *lab.Cluster) []corev1.Node {
	GinkgoHelper()
	nodes := &corev1.NodeList{}
	Expect(workloadOf(cluster).List(ctx, nodes)).To(Succeed())
	return nodes.Items
}

func internalAddresses(node corev1.Node) []string {
	var addresses []string
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			addresses = append(addresses, address.Address)
		}
	}
	return addresses
}

// expectArchitectures checks that the hosts booted images, and are Nodes, of these architectures, the control
// plane first.
func expectArchitectures(wanted ...string) func(ctx context.Context, cluster *lab.Cluster) {
	return func(ctx context.Context, cluster *lab.Cluster) {
		GinkgoHelper()
		s, found := state(ctx, cluster), []string{}
		slices.SortFunc(s.Machines, func(a, b lab.Machine) int { return strings.Compare(isWorker(a), isWorker(b)) })
		for _, m := range s.Machines {
			architecture := nodeOf(ctx, workloadOf(cluster), m).Labels[corev1.LabelArchStable]
			found = append(found, architecture)
			Expect(m.Agent.Labels).To(HaveKeyWithValue("inventory.agent-install.openshift.io/cpu-architecture",
				map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[architecture]))
		}
		Expect(found).To(Equal(wanted))
	}
}

func isWorker(m lab.Machine) string {
	if m.IsControlPlane() {
		return "no"
	}
	return "yes"
}

// expectMirrored checks that hosts and cluster have the mirrors, and that the release came from them, with only
// the mirror's credentials.
func expectMirrored(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	s := state(ctx, cluster)
	mirrors := &hiveext.MirrorRegistryConfigMapReference{Namespace: cluster.Namespace, Name: "disconnected-mirrors"}
	Expect(s.Installation.Spec.MirrorRegistryRef).To(Equal(mirrors))
	for _, infraEnv := range s.InfraEnvs {
		Expect(infraEnv.Spec.MirrorRegistryRef).To(Equal(mirrors))
	}
	image := s.ControlPlane.Status.ReleaseImage
	Expect(image).To(HavePrefix("quay.io/openshift-release-dev/ocp-release@sha256:"))
	_, digest, _ := strings.Cut(image, "@")
	Expect(laboratory.Mirror.Lookups()).To(ContainElement(HaveSuffix("/openshift/release-images/manifests/" + digest)))
	// Other specs look up the same release.
	begin := s.Cluster.CreationTimestamp.Time
	Expect(laboratory.Registry.LookupsSince(begin)).NotTo(ContainElement(ContainSubstring(digest)))
}

// expectWaves checks that the host of the sample was installed, and that it was healthy for Argo CD before the
// cluster.
func expectWaves(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	s := state(ctx, cluster)
	Expect(s.Machines[0].Host.Name).To(Equal(cluster.Name + "-1"))
	Expect(health.ofObject("BareMetalHost", client.ObjectKeyFromObject(s.Machines[0].Host))).To(ContainElement(withStatus(argocd.Healthy)))
}

// expectProxied checks that both the discovered hosts and the cluster have the proxy.
func expectProxied(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	s := state(ctx, cluster)
	wanted := *s.ControlPlane.Spec.Config.Proxy
	Expect(wanted.HTTPProxy).NotTo(BeEmpty())
	Expect(*s.Installation.Spec.Proxy).To(Equal(hiveext.Proxy{
		HTTPProxy: wanted.HTTPProxy, HTTPSProxy: wanted.HTTPSProxy,
		NoProxy: wanted.NoProxy,
	}))
	for _, infraEnv := range s.InfraEnvs {
		Expect(infraEnv.Spec.Proxy.HTTPSProxy).To(Equal(wanted.HTTPSProxy))
		Expect(infraEnv.Spec.Proxy.NoProxy).To(Equal(wanted.NoProxy))
	}
}

// expectStatic checks that each host has only the address of the NMStateConfig with its MAC address.
func expectStatic(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	s, found := state(ctx, cluster), []string{}
	for _, m := range s.Machines {
		found = append(found, m.Host.Spec.BootMACAddress+" "+strings.Join(internalAddresses(*nodeOf(ctx, workloadOf(cluster), m)), ","))
	}
	Expect(found).To(ConsistOf("52:54:00:00:01:01 192.0.2.21", "52:54:00:00:01:02 192.0.2.22", "52:54:00:00:01:03 192.0.2.23"))
	for _, infraEnv := range s.InfraEnvs {
		Expect(infraEnv.Spec.NMStateConfigLabelSelector.MatchLabels).To(HaveKeyWithValue("example.com/cluster", cluster.Name))
		Expect(infraEnv.Status.InfraEnvDebugInfo.StaticNetworkDownloadURL).NotTo(BeEmpty())
	}
}

// expectThirdPartyNetwork checks that the plug-in is not OpenShift's, and that its manifests are among those of
// the installation.
func expectThirdPartyNetwork(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	installation := state(ctx, cluster).Installation
	Expect(installation.Annotations[assisted.InstallConfigOverridesAnnotation]).To(ContainSubstring(`"networkType":"Calico"`))
	Expect(installation.Spec.ManifestsConfigMapRefs).To(ConsistOf(
		hiveext.ManifestsConfigMapReference{Name: cluster.Name + "-operator"},
		hiveext.ManifestsConfigMapReference{Name: cluster.Name + "-installation"},
	))
}

// expectUserManagedLoadBalancer checks that the AgentClusterInstall has the load balancer, with one address for
// both, and the network of that address.
func expectUserManagedLoadBalancer(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	spec := state(ctx, cluster).Installation.Spec
	Expect(spec.LoadBalancer).To(HaveValue(Equal(hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged})))
	Expect(spec.PlatformType).To(Equal(hiveext.BareMetalPlatformType))
	Expect(spec.APIVIPs).To(Equal(spec.IngressVIPs))
	Expect(spec.Networking.MachineNetwork).To(HaveLen(2))
}

// expectChecked checks that each MachineHealthCheck found its Machines, all healthy, and remediated none of
// them.
func expectChecked(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	for name, machines := range map[string]int32{"control-plane": 3, "worker": 2} {
		check := &clusterv1.MachineHealthCheck{}
		Eventually(func(g Gomega) {
			g.Expect(laboratory.Client().Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-" + name},
				check)).To(Succeed())
			g.Expect(check.Status.ExpectedMachines).To(HaveValue(Equal(machines)))
			g.Expect(check.Status.CurrentHealthy).To(HaveValue(Equal(machines)))
			g.Expect(check.Status.RemediationsAllowed).To(HaveValue(BeEquivalentTo(1)), "one remediation at a time")
		}).WithContext(ctx).Should(Succeed())
	}
	s := state(ctx, cluster)
	Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RemediatingCondition).Status).To(Equal(metav1.ConditionFalse))
	Expect(events(ctx, cluster.Namespace, "MachineRemediated")).To(BeEmpty())
	for _, m := range s.Machines {
		host := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name))
		Expect(host.Boots()).To(HaveLen(2), "%s was booted for discovery and installation only", host.Name())
		Expect(host.Boots()[0].System).To(Equal(hosts.Discovery))
	}
}

// classVariables are the optional variables of the ClusterClass that the disconnected Cluster of docs/samples.md
// omits.
var classVariables = map[string]any{
	"proxy": map[string]any{"httpProxy": "http://proxy.example.com:3128", "noProxy": ".example.com"}, "sshAuthorizedKey": "ssh-ed25519 AAAA",
	"additionalTrustBundle": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", "networkType": "OVNKubernetes",
	"installConfigOverride": `{"fips":true}`,
}

var _ = Describe("The ClusterClass", Label("samples", "nightly"), func() {
	It("creates a disconnected cluster: its variables reach the discovered hosts and the installation", func(ctx SpecContext) {
		onlySimulated() // the real service supports neither oc nor mirrors here
		cluster, err := laboratory.ApplyManifests(ctx, disconnectedOfClass(),
			lab.Mutations{Namespace: "class-disconnected", ClusterName: "site", LightAPI: true, Edit: addClassVariables})
		Expect(err).NotTo(HaveOccurred())
		adopt(cluster)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		Expect(cluster.Drift(ctx, "argocd-controller")).To(BeEmpty())
		expectMirrored(ctx, cluster)
		s := state(ctx, cluster)
		Expect(s.InfraEnvs).To(HaveLen(4), "for control plane and worker")
		for _, infraEnv := range s.InfraEnvs {
			Expect(infraEnv.Spec.Proxy).To(HaveValue(Equal(aiv1beta1.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"})))
			Expect(infraEnv.Spec.SSHAuthorizedKey).To(Equal(classVariables["sshAuthorizedKey"]))
			Expect(infraEnv.Spec.AdditionalNTPSources).To(ConsistOf("ntp.example.com"))
			Expect(infraEnv.Spec.AdditionalTrustBundle).To(Equal(classVariables["additionalTrustBundle"]))
			Expect(infraEnv.Spec.PullSecretRef.Name).To(Equal("disconnected-pull-secret"))
		}
		for _, m := range s.Machines {
			Expect(m.Config.Spec.BootMode).To(Equal(bootstrapv1.BootModeLiveISO), "settings of the class and of variables are combined")
		}
		installation := s.Installation
		Expect(installation.Spec.Proxy).To(HaveValue(Equal(hiveext.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"})))
		Expect(installation.Spec.SSHPublicKey).To(Equal(classVariables["sshAuthorizedKey"]))
		Expect(installation.Spec.Networking.NetworkType).To(Equal("OVNKubernetes"))
		Expect(installation.Annotations[assisted.InstallConfigOverridesAnnotation]).To(ContainSubstring(`"fips":true`))
		expectDeleted(ctx, cluster)
	}, NodeTimeout(installTimeout+deleteTimeout))
})

// disconnectedOfClass returns the manifests of docs/samples.md for a disconnected cluster of the ClusterClass.
// They are the class, the Secret and the ConfigMap of the disconnected sample, and a Cluster.
func disconnectedOfClass() []byte {
	GinkgoHelper()
	class, err := os.ReadFile("../../config/templates/clusterclass-agent.yaml")
	Expect(err).NotTo(HaveOccurred())
	sample, err := os.ReadFile("../../config/samples/disconnected.yaml")
	Expect(err).NotTo(HaveOccurred())
	secretAndMirrors, _, found := strings.Cut(string(sample), "---\napiVersion: cluster.x-k8s.io")
	Expect(found).To(BeTrue())
	return []byte(strings.Join([]string{string(class), secretAndMirrors, string(exampleOf("samples.md"))}, "\n---\n"))
}

// addClassVariables adds the omitted variables to a Cluster.
func addClassVariables(object *unstructured.Unstructured) {
	GinkgoHelper()
	if object.GetKind() != "Cluster" {
		return
	}
	variables, _, err := unstructured.NestedSlice(object.Object, "spec", "topology", "variables")
	Expect(err).NotTo(HaveOccurred())
	for name, value := range classVariables {
		variables = append(variables, map[string]any{"name": name, "value": value})
	}
	Expect(unstructured.SetNestedSlice(object.Object, variables, "spec", "topology", "variables")).To(Succeed())
}
