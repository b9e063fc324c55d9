package registration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// updateGolden is the environment variable that makes the tests write their golden files.
const updateGolden = "UPDATE_GOLDEN"

func expectGolden(t *testing.T, name string, obj any) {
	t.Helper()
	g := NewWithT(t)
	is, err := yaml.Marshal(obj)
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join("testdata", name+".yaml")
	if os.Getenv(updateGolden) != "" {
		g.Expect(os.MkdirAll("testdata", 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, is, 0o600)).To(Succeed())
	}
	wanted, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(is)).To(Equal(string(wanted)), "run with %s=1 to accept", updateGolden)
}

func TestAgentClusterInstallGolden(t *testing.T) {
	type config = controlplanev1.InstallationConfig
	for name, change := range map[string]func(f *facts.Facts, config *config){
		"aci-sno": func(f *facts.Facts, config *config) {
			f.ControlPlane.Spec.Replicas, config.APIVIPs, config.IngressVIPs = ptr.To[int32](1), nil, nil
		},
		"aci-compact": func(_ *facts.Facts, config *config) {
			config.MastersSchedulable, config.MachineNetwork = ptr.To(true), []string{"192.168.111.0/24"}
		},
		"aci-ha": func(f *facts.Facts, config *config) {
			f.DayOneWorkers, config.NetworkType, config.SSHAuthorizedKey = 2, "OVNKubernetes", "ssh-ed25519 key"
			network := &f.Cluster.Spec.ClusterNetwork
			network.Pods.CIDRBlocks, network.Services.CIDRBlocks = []string{"172.18.0.0/20"}, []string{"10.96.0.0/12"}
			config.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://proxy:3128", NoProxy: ".lab"}
			config.DiskEncryption = &controlplanev1.DiskEncryption{EnableOn: "all", Mode: "tpmv2"}
			config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "extra"}}
			config.ImageRegistryRef, config.HoldInstallation = &corev1.LocalObjectReference{Name: "mirrors"}, ptr.To(true)
			config.InstallConfigOverride = `{"fips":true}`
		},
		"aci-dual-stack": func(f *facts.Facts, config *config) {
			config.APIVIPs, config.IngressVIPs = []string{"192.168.111.5", "fd00::5"}, []string{"192.168.111.4", "fd00::4"}
			network := &f.Cluster.Spec.ClusterNetwork
			network.Pods.CIDRBlocks, network.Services.CIDRBlocks = []string{"10.128.0.0/14", "fd01::/48"}, []string{"172.30.0.0/16", "fd02::/112"}
			config.MachineNetwork = []string{"192.168.111.0/24", "fd00::/64"}
		},
		"aci-external": func(f *facts.Facts, config *config) {
			config.APIVIPs, config.IngressVIPs = nil, nil
			config.ExternalPlatform = &controlplanev1.ExternalPlatform{Name: "metal-stack", CloudControllerManager: "External"}
			config.Hyperthreading = &controlplanev1.Hyperthreading{ControlPlane: "Disabled"}
			config.HostPrefix = &controlplanev1.HostPrefix{IPv4: 25, IPv6: 72}
			network := &f.Cluster.Spec.ClusterNetwork
			network.Pods.CIDRBlocks = []string{"10.128.0.0/14", "fd01::/48"}
			config.MachineNetwork = []string{"192.168.111.0/24", "fd00::/64"}
		},
		"aci-hyperthreading-of-workers": func(_ *facts.Facts, config *config) {
			config.Hyperthreading = &controlplanev1.Hyperthreading{Workers: "Disabled"}
			config.HostPrefix = &controlplanev1.HostPrefix{IPv4: 14}
			config.DiskEncryption = &controlplanev1.DiskEncryption{EnableOn: "masters,workers", Mode: "tpmv2"}
		},
		"aci-arbiter": func(f *facts.Facts, config *config) {
			f.ControlPlane.Spec.Arbiter, f.DayOneWorkers = &controlplanev1.ArbiterSpec{}, 1
			config.Hyperthreading = &controlplanev1.Hyperthreading{ControlPlane: "Disabled"}
		},
		"aci-fencing": func(f *facts.Facts, _ *config) {
			f.ControlPlane.Spec.Replicas, f.DayOneWorkers = ptr.To[int32](2), 2
			f.ControlPlane.Spec.Fencing = &controlplanev1.FencingSpec{CredentialsFrom: controlplanev1.FencingCredentialsFromBareMetalHosts}
		},
		"aci-user-managed-load-balancer": func(_ *facts.Facts, config *config) {
			config.LoadBalancer, config.IngressVIPs = &controlplanev1.LoadBalancer{Type: "UserManaged"}, config.APIVIPs
			config.MachineNetwork = []string{"10.0.1.0/24", "10.0.2.0/24", "192.168.111.0/24"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := factsOf(nil)
			config := &f.ControlPlane.Spec.Config
			config.APIVIPs, config.IngressVIPs = []string{"192.168.111.5"}, []string{"192.168.111.4"}
			change(f, config)
			aci, err := AgentClusterInstall(f, "lab-c1-12345678", semver.MustParse("4.19.3"))
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			expectGolden(t, name, aci.Spec)
		})
	}
}

// assisted-service distinguishes an empty annotation from none: an empty one enforces validations that it ignores for all
// clusters. The order of the list does not matter, and must not cause a write.
func TestIgnoredValidations(t *testing.T) {
	const cluster, hosts = "agent-install.openshift.io/ignored-cluster-validations", "agent-install.openshift.io/ignored-host-validations"
	for situation, tc := range map[string]struct {
		ignored *controlplanev1.IgnoredValidations
		wanted  map[string]string
	}{
		"none":  {nil, map[string]string{}},
		"hosts": {&controlplanev1.IgnoredValidations{Hosts: []string{"ntp-synced"}}, map[string]string{hosts: "ntp-synced"}},
		"both, unordered": {
			&controlplanev1.IgnoredValidations{Cluster: []string{"ntp-server-configured", "dns-domain-defined"}, Hosts: []string{"ntp-synced"}},
			map[string]string{cluster: "dns-domain-defined,ntp-server-configured", hosts: "ntp-synced"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), factsOf(nil)
			f.ControlPlane.Spec.Config.IgnoredValidations = tc.ignored
			aci, err := AgentClusterInstall(f, "lab-c1-12345678", semver.MustParse("4.19.3"))
			g.Expect(err).NotTo(HaveOccurred())
			for _, key := range []string{cluster, hosts} {
				value, set := aci.Annotations[key]
				wanted, expected := tc.wanted[key]
				g.Expect(set).To(Equal(expected), key)
				g.Expect(value).To(Equal(wanted), key)
			}
		})
	}
}

func TestHostPrefixIsWithinTheNetwork(t *testing.T) {
	for cidr, prefix := range map[string]controlplanev1.HostPrefix{"10.128.0.0/14": {IPv4: 13}, "fd01::/48": {IPv6: 47}} {
		f := factsOf(nil)
		f.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"172.16.0.0/12", cidr}
		f.ControlPlane.Spec.Config.HostPrefix = &prefix
		_, err := AgentClusterInstall(f, "lab-c1-12345678", semver.MustParse("4.19.3"))
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("of network " + cidr + ": correct config.hostPrefix")))
	}
}

// An import leaves out the fields for installations, and ignores mistakes in them.
func TestImportGolden(t *testing.T) {
	f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		config := &cp.Spec.Config
		config.BaseDomain, config.APIVIPs, config.IngressVIPs = "example.com", []string{"192.168.111.5"}, []string{"192.168.111.4"}
		config.ManifestsConfigMapRefs = []corev1.LocalObjectReference{{Name: "extra"}}
		config.ImageRegistryRef, config.InstallConfigOverride = &corev1.LocalObjectReference{Name: "mirrors"}, "no JSON"
		config.Proxy = &bootstrapv1.Proxy{HTTPProxy: "http://proxy:3128"}
	})
	identity := workload.Identity{ClusterID: "cluster-id", InfraID: "c1-x7k2p"}
	expectGolden(t, "import-clusterdeployment", ImportedClusterDeployment(f, semver.MustParse("4.19.7"), identity).Object)
	install := ImportedAgentClusterInstall(f, "lab-c1-12345678", identity)
	expectGolden(t, "import-aci", map[string]any{"annotations": install.Annotations, "labels": install.Labels, "spec": install.Spec})
	NewWithT(t).Expect(ImportedAgentClusterInstall(f, "", identity).Spec.ImageSetRef).To(BeNil())
}

func TestClusterDeploymentGolden(t *testing.T) {
	f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.ClusterName, cp.Spec.Config.BaseDomain = "friendly", "example.com"
	})
	expectGolden(t, "clusterdeployment-okd", ClusterDeployment(f, semver.MustParse("4.19.0-okd-scos.5")).Object)
}
