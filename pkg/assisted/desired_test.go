package assisted

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

// updateGolden, when set in the environment, makes the tests write the files that they else compare with.
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
	base := AgentClusterInstallInput{
		Namespace: "lab", Name: "c1", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "cluster1"}, ImageSet: "lab-c1-12345678",
		ControlPlaneAgents: 3, APIVIPs: []string{"192.168.111.5"}, IngressVIPs: []string{"192.168.111.4"},
	}
	for name, change := range map[string]func(*AgentClusterInstallInput){
		"aci-sno": func(in *AgentClusterInstallInput) { in.ControlPlaneAgents, in.APIVIPs, in.IngressVIPs = 1, nil, nil },
		"aci-compact": func(in *AgentClusterInstallInput) {
			in.MastersSchedulable, in.MachineNetworks = true, []string{"192.168.111.0/24"}
		},
		"aci-ha": func(in *AgentClusterInstallInput) {
			in.WorkerAgents, in.NetworkType, in.SSHPublicKey = 2, "OVNKubernetes", "ssh-ed25519 key"
			in.PodNetworks, in.ServiceNetworks = []string{"172.18.0.0/20"}, []string{"10.96.0.0/12"}
			in.Proxy = &Proxy{HTTP: "http://proxy:3128", NoProxy: ".lab"}
			in.DiskEncryption = &DiskEncryption{EnableOn: "all", Mode: "tpmv2"}
			in.Manifests, in.MirrorRegistry, in.HoldInstallation = []string{"extra"}, "mirrors", true
			in.InstallConfigOverrides = `{"fips":true}`
		},
		"aci-dual-stack": func(in *AgentClusterInstallInput) {
			in.APIVIPs, in.IngressVIPs = []string{"192.168.111.5", "fd00::5"}, []string{"192.168.111.4", "fd00::4"}
			in.PodNetworks, in.ServiceNetworks = []string{"10.128.0.0/14", "fd01::/48"}, []string{"172.30.0.0/16", "fd02::/112"}
			in.MachineNetworks = []string{"192.168.111.0/24", "fd00::/64"}
		},
		"aci-user-managed-load-balancer": func(in *AgentClusterInstallInput) {
			in.LoadBalancerType, in.IngressVIPs, in.MachineNetworks = "UserManaged", in.APIVIPs, []string{"10.0.1.0/24", "10.0.2.0/24"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := base
			change(&in)
			expectGolden(t, name, AgentClusterInstall(in).Spec)
		})
	}
}

func TestClusterDeploymentGolden(t *testing.T) {
	expectGolden(t, "clusterdeployment-okd", ClusterDeployment(ClusterDeploymentInput{
		Namespace: "lab", Name: "c1", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "cluster1"},
		ClusterName: "friendly", BaseDomain: "example.com", PullSecret: "c1-placeholder-pull-secret", OpenShiftVersion: "4.19.0-okd-scos.5",
	}).Object)
}

func TestClusterImageSetName(t *testing.T) {
	g := NewWithT(t)
	g.Expect(ClusterImageSetName("lab", "c1", "image")).To(Equal(ClusterImageSetName("lab", "c1", "image")))
	g.Expect(ClusterImageSetName("a-b", "c", "image")).NotTo(Equal(ClusterImageSetName("a", "b-c", "image")), "same prefix, other control plane")
	g.Expect(ClusterImageSetName("lab", "c1", "image")).NotTo(Equal(ClusterImageSetName("lab", "c1", "other")), "a changed content is another set")
	g.Expect(len(ClusterImageSetName(string(make([]byte, 63)), string(make([]byte, 253)), "image"))).To(BeNumerically("<=", 253))
}

func TestInstallConfigOverrides(t *testing.T) {
	new419, old414 := semver.MustParse("4.19.3"), semver.MustParse("4.14.9")
	for situation, tc := range map[string]struct {
		capabilities Capabilities
		bareMetal    bool
		version      semver.Version
		layers       []string
		result       string
	}{
		"platform none takes all there is": {version: new419, result: `{"capabilities":{"baselineCapabilitySet":"vCurrent"}}`},
		"bare metal takes what it needs": {
			bareMetal: true, version: new419,
			result: `{"capabilities":{"additionalEnabledCapabilities":["baremetal","Console","Insights","OperatorLifecycleManager","Ingress","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"a release is not told of capabilities that it does not know": {
			bareMetal: true, version: old414,
			result: `{"capabilities":{"additionalEnabledCapabilities":["baremetal","Console","Insights","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"a baseline of the user's stands alone": {
			capabilities: Capabilities{Baseline: "v4.18", Additional: []string{"Storage"}}, bareMetal: true, version: new419,
			result: `{"capabilities":{"additionalEnabledCapabilities":["Storage"],"baselineCapabilitySet":"v4.18"}}`,
		},
		"objects are merged, the last layer wins": {
			version: new419, layers: []string{`{"a":{"b":1,"c":2},"fips":false}`, `{"a":{"c":3},"fips":true}`, ""},
			result: `{"a":{"b":1,"c":3},"capabilities":{"baselineCapabilitySet":"vCurrent"},"fips":true}`,
		},
		"the user wins over the capabilities": {
			version: new419, layers: []string{`{"capabilities":{"baselineCapabilitySet":"None"}}`},
			result: `{"capabilities":{"baselineCapabilitySet":"None"}}`,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			for range 5 { // the same bytes each time
				result, err := InstallConfigOverrides(tc.capabilities, tc.bareMetal, tc.version, tc.layers...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result).To(Equal(tc.result))
			}
		})
	}
	_, err := InstallConfigOverrides(Capabilities{}, false, new419, `{"pullSecret": hush`)
	NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring("hush"))))
}
