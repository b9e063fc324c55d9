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
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/argocd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

// installedSample is what is expected of a sample once it is installed.
type installedSample struct {
	machines int
	// on is the assisted-service that it is installed by with each change; empty: both. At night it is, by either.
	on lab.Backend
	// lacks is why the real assisted-service (April 2025) cannot install it; empty: it can.
	lacks string
	// about checks what the sample is about, beyond being installed.
	about func(ctx context.Context, cluster *lab.Cluster)
}

// everySample is installed for every change, by one assisted-service or both, furtherSamples once a day: what they are
// about is passed on to assisted-service, and tested by itself. A test of config looks whether each sample is in one of
// them.
var (
	everySample = map[string]installedSample{
		"ha": {machines: 5, on: lab.Simulated}, "compact": {machines: 3, on: lab.Simulated}, "sno": {machines: 1},
		"ha-disk-image": {machines: 5, on: lab.Real},
		"okd":           {machines: 5, on: lab.Real}, "dual-stack": {machines: 3, on: lab.Real, about: expectDualStack},
	}
	furtherSamples = map[string]installedSample{
		"arbiter":             {machines: 3, lacks: "arbiters"}, // which a spec of its own installs for every change
		"argocd":              {machines: 1, about: expectWaves},
		"arm64":               {machines: 3, about: expectArchitectures("arm64", "arm64", "arm64")},
		"clusterclass":        {machines: 5}, // of whose class a spec of its own makes a cluster for every change
		"disconnected":        {machines: 3, lacks: "mirrors", about: expectMirrored},
		"health-checks":       {machines: 5, about: expectChecked},
		"mixed-architectures": {machines: 4, about: expectArchitectures("amd64", "amd64", "amd64", "arm64")},
		"proxy":               {machines: 3, about: expectProxied},
		"static-network":      {machines: 3, lacks: "nmstate", about: expectStatic},
		"third-party-cni":     {machines: 3, about: expectThirdPartyNetwork},
		"two-node":            {machines: 2, lacks: "fencing"}, // which a spec of its own installs for every change
		"user-load-balancer":  {machines: 3, about: expectUserManagedLoadBalancer},
	}
)

// here are the samples that the assisted-service of this run installs: at night (LONG=1) all that it can.
func here(samples map[string]installedSample) map[string]installedSample {
	backend, _ := lab.ParseBackend("assisted-service", os.Getenv(backendVariable)) // the suite does not begin with another
	chosen := maps.Clone(samples)
	maps.DeleteFunc(chosen, func(_ string, s installedSample) bool {
		return backend == lab.Real && s.lacks != "" || os.Getenv(longVariable) == "" && s.on != "" && s.on != backend
	})
	return chosen
}

// samplesOf installs samples all at the same time, and looks at each of them.
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
			if expected.about != nil {
				expected.about(ctx, cluster)
			}
		}, NodeTimeout(2*soon))
	}
	It("are in progress to Argo CD until they are installed, and never degraded", func() {
		for _, cluster := range clusters {
			for _, kind := range []string{"Cluster", "OpenshiftAssistedControlPlane", "AgentClusterInstall"} {
				// The checks run on what is watched, which may be behind what the laboratory waited for.
				Eventually(func() []argocd.Health { return health.ofObject(kind, cluster.Key()) }).Should(ContainElement(withStatus(argocd.Healthy)),
					"%s %s", kind, cluster.Key())
				seen := health.ofObject(kind, cluster.Key())
				Expect(seen).To(HaveEach(Or(withStatus(argocd.Progressing), withStatus(argocd.Healthy))), "%s %s", kind, cluster.Key())
				Expect(seen[0]).To(withStatus(argocd.Progressing), "%s %s", kind, cluster.Key())
			}
		}
	})
	It("do not differ from what Argo CD would apply again", func(ctx SpecContext) {
		for _, cluster := range clusters {
			Expect(cluster.Drift(ctx, "argocd-controller")).To(BeEmpty(), "of %s", cluster.Key())
		}
	}, NodeTimeout(soon))
	return clusters
}

// The samples are installed all at the same time, looked at, left alone, and deleted.
var _ = Describe("Samples", Ordered, Label("samples"), func() {
	var asked int
	BeforeAll(func() { asked = len(laboratory.Registry.Lookups()) })
	clusters := samplesOf(here(everySample))

	It("ask the registry once for each release", func() {
		seen := map[string]bool{}
		for _, lookup := range laboratory.Registry.Lookups()[asked:] {
			Expect(seen).NotTo(HaveKey(lookup), "asked again")
			seen[lookup] = true
		}
		Expect(len(seen)).To(BeNumerically("<=", 2), "one OpenShift and one OKD release in all clusters")
	})

	It("ask the API servers and assisted-service for no more than they must", func() {
		if clusters["ha"] == nil {
			Skip("needs the simulated assisted-service")
		}
		expectFewRequests(clusters["ha"])
	})

	It("need nothing, once installed, while nothing happens", Label("idle"), func(ctx SpecContext) {
		expectIdle(ctx, slices.Collect(maps.Values(clusters))...)
	}, NodeTimeout(4*soon))

	It("leave nothing behind when they are deleted", func(ctx SpecContext) {
		left := clusters["sno"]
		delete(clusters, "sno")
		expectDeleted(ctx, slices.Collect(maps.Values(clusters))...)
		expectNotTouched(ctx, left)
	}, NodeTimeout(deleteTimeout+soon))
})

var _ = Describe("Further samples", Ordered, Label("samples", "nightly"), func() {
	clusters := samplesOf(here(furtherSamples))

	It("leave nothing behind when they are deleted", func(ctx SpecContext) {
		expectDeleted(ctx, slices.Collect(maps.Values(clusters))...)
	}, NodeTimeout(deleteTimeout+soon))
})

// expectDualStack: both families are in everything that has addresses.
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

// families tells of which family each address or network is.
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

// expectArchitectures: the hosts booted images, and are Nodes, of these architectures, the control plane first.
func expectArchitectures(wanted ...string) func(ctx context.Context, cluster *lab.Cluster) {
	return func(ctx context.Context, cluster *lab.Cluster) {
		GinkgoHelper()
		s, found := state(ctx, cluster), []string{}
		slices.SortFunc(s.Machines, func(a, b lab.Machine) int { return strings.Compare(isWorker(a), isWorker(b)) })
		for _, m := range s.Machines {
			architecture := nodeOf(ctx, workloadOf(cluster), m).Labels[corev1.LabelArchStable]
			found = append(found, architecture)
			Expect(m.Agent.Status.Inventory.Cpu.Architecture).To(Equal(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[architecture]))
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

// expectMirrored: mirrors reached hosts and cluster, and the release came from there, with nothing but the mirror's credentials.
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
	Expect(laboratory.Registry.Lookups()).NotTo(ContainElement(ContainSubstring(digest)))
}

// expectWaves: the host of the sample is the one that was installed, and it was healthy to Argo CD before the cluster could be.
func expectWaves(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	s := state(ctx, cluster)
	Expect(s.Machines[0].Host.Name).To(Equal(cluster.Name + "-1"))
	Expect(health.ofObject("BareMetalHost", client.ObjectKeyFromObject(s.Machines[0].Host))).To(ContainElement(withStatus(argocd.Healthy)))
}

// expectProxied: the proxy reached both the hosts that are discovered and the cluster.
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

// expectStatic: each host has the address of the NMStateConfig with its MAC address, and no other; nobody else gave it one.
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

// expectThirdPartyNetwork: the plug-in is none of OpenShift's, and its manifests are among those of the installation.
func expectThirdPartyNetwork(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	installation := state(ctx, cluster).Installation
	Expect(installation.Annotations[assisted.InstallConfigOverridesAnnotation]).To(ContainSubstring(`"networkType":"Calico"`))
	Expect(installation.Spec.ManifestsConfigMapRefs).To(ConsistOf(
		hiveext.ManifestsConfigMapReference{Name: cluster.Name + "-operator"},
		hiveext.ManifestsConfigMapReference{Name: cluster.Name + "-installation"},
	))
}

// expectUserManagedLoadBalancer: the AgentClusterInstall states it, with one address for both, and the network of that address.
func expectUserManagedLoadBalancer(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	spec := state(ctx, cluster).Installation.Spec
	Expect(spec.LoadBalancer).To(HaveValue(Equal(hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged})))
	Expect(spec.PlatformType).To(Equal(hiveext.BareMetalPlatformType))
	Expect(spec.APIVIPs).To(Equal(spec.IngressVIPs))
	Expect(spec.Networking.MachineNetwork).To(HaveLen(2))
}

// expectChecked: each MachineHealthCheck found its Machines, all healthy, and had none of them replaced.
func expectChecked(ctx context.Context, cluster *lab.Cluster) {
	GinkgoHelper()
	for name, machines := range map[string]int32{"control-plane": 3, "worker": 2} {
		check := &clusterv1.MachineHealthCheck{}
		Eventually(func(g Gomega) {
			g.Expect(laboratory.Client().Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-" + name},
				check)).To(Succeed())
			g.Expect(check.Status.ExpectedMachines).To(HaveValue(Equal(machines)))
			g.Expect(check.Status.CurrentHealthy).To(HaveValue(Equal(machines)))
			g.Expect(check.Status.RemediationsAllowed).To(HaveValue(BeEquivalentTo(1)), "one at a time")
		}).WithContext(ctx).Should(Succeed())
	}
	s := state(ctx, cluster)
	Expect(lab.Condition(s.ControlPlane.Status.Conditions, controlplanev1.RemediatingCondition).Status).To(Equal(metav1.ConditionFalse))
	Expect(events(ctx, cluster.Namespace, "MachineRemediated")).To(BeEmpty())
	for _, m := range s.Machines {
		host := laboratory.Rack.Host(path.Join(m.Host.Namespace, m.Host.Name))
		Expect(host.Boots()).To(HaveLen(2), "%s was booted to be discovered and installed", host.Name())
		Expect(host.Boots()[0].System).To(Equal(hosts.Discovery))
	}
}

// classVariables are those of the ClusterClass that a Cluster may leave out, and the disconnected one of docs/samples.md does.
var classVariables = map[string]any{
	"proxy": map[string]any{"httpProxy": "http://proxy.example.com:3128", "noProxy": ".example.com"}, "sshAuthorizedKey": "ssh-ed25519 AAAA",
	"additionalTrustBundle": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n", "networkType": "OVNKubernetes",
	"installConfigOverride": `{"fips":true}`,
}

var _ = Describe("The ClusterClass", Label("samples"), func() {
	It("makes a disconnected cluster: what its Cluster says reaches the discovered hosts and the installation", func(ctx SpecContext) {
		onlySimulated() // the real service has no oc and no mirrors
		cluster, err := laboratory.ApplyManifests(ctx, disconnectedOfClass(),
			lab.Mutations{Namespace: "class-disconnected", ClusterName: "site", LightAPI: true, Edit: addClassVariables})
		Expect(err).NotTo(HaveOccurred())
		adopt(cluster)
		waitAvailable(ctx, cluster)
		expectInstalled(ctx, cluster, 0)
		Expect(cluster.Drift(ctx, "argocd-controller")).To(BeEmpty())
		expectMirrored(ctx, cluster)
		s := state(ctx, cluster)
		Expect(s.InfraEnvs).To(HaveLen(4), "of control plane and worker")
		for _, infraEnv := range s.InfraEnvs {
			Expect(infraEnv.Spec.Proxy).To(HaveValue(Equal(aiv1beta1.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"})))
			Expect(infraEnv.Spec.SSHAuthorizedKey).To(Equal(classVariables["sshAuthorizedKey"]))
			Expect(infraEnv.Spec.AdditionalNTPSources).To(ConsistOf("ntp.example.com"))
			Expect(infraEnv.Spec.AdditionalTrustBundle).To(Equal(classVariables["additionalTrustBundle"]))
			Expect(infraEnv.Spec.PullSecretRef.Name).To(Equal("disconnected-pull-secret"))
		}
		for _, m := range s.Machines {
			Expect(m.Config.Spec.BootMode).To(Equal(bootstrapv1.BootModeLiveISO), "what the class says remains beside what variables say")
		}
		installation := s.Installation
		Expect(installation.Spec.Proxy).To(HaveValue(Equal(hiveext.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"})))
		Expect(installation.Spec.SSHPublicKey).To(Equal(classVariables["sshAuthorizedKey"]))
		Expect(installation.Spec.Networking.NetworkType).To(Equal("OVNKubernetes"))
		Expect(installation.Annotations[assisted.InstallConfigOverridesAnnotation]).To(ContainSubstring(`"fips":true`))
		expectDeleted(ctx, cluster)
	}, NodeTimeout(installTimeout+deleteTimeout))
})

// disconnectedOfClass is what docs/samples.md tells for a disconnected cluster of the ClusterClass: the class, the
// Secret and the ConfigMap of the disconnected sample, and a Cluster.
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

// addClassVariables adds to a Cluster what it does not say yet.
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
