package assistedsim

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"github.com/openshift/assisted-service/models"
	"k8s.io/apimachinery/pkg/types"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

func TestHostsNeedAddressesInMachineNetworks(t *testing.T) {
	const ipv4, ipv6 = "192.0.2.0/24", "2001:db8::/64"
	userManaged := func(spec *hiveext.AgentClusterInstallSpec) {
		spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged}
	}
	for situation, c := range map[string]struct {
		networks  []string
		addresses []string
		change    func(*hiveext.AgentClusterInstallSpec)
		outside   bool
	}{
		"in the network":                  {networks: []string{ipv4}, addresses: []string{"192.0.2.7/24"}},
		"in another":                      {networks: []string{ipv4}, addresses: []string{"198.51.100.7/24"}, outside: true},
		"in both of a dual-stack cluster": {networks: []string{ipv4, ipv6}, addresses: []string{"192.0.2.7/24", "2001:db8::7/64"}},
		"in one of two":                   {networks: []string{ipv4, ipv6}, addresses: []string{"192.0.2.7/24"}, outside: true},
		"in one of two, with user-managed load balancer": {
			networks: []string{ipv4, "198.51.100.0/24"}, addresses: []string{"192.0.2.7/24"}, change: userManaged,
		},
		"in none, with user-managed load balancer": {
			networks: []string{ipv4, "198.51.100.0/24"}, addresses: []string{"203.0.113.7/24"}, change: userManaged, outside: true,
		},
		"no machine network": {addresses: []string{"192.0.2.7/24"}},
		"a single node in another": {
			networks: []string{ipv4}, change: func(spec *hiveext.AgentClusterInstallSpec) { spec.ProvisionRequirements.ControlPlaneAgents = 1 },
			outside: true,
		},
		"the user manages the network": {
			networks: []string{ipv4}, change: func(spec *hiveext.AgentClusterInstallSpec) { spec.PlatformType = hiveext.NonePlatformType },
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, s := NewWithT(t), newSimulator(t, Options{})
			cluster := &cluster{key: types.NamespacedName{Name: "c"}}
			cluster.spec.ProvisionRequirements.ControlPlaneAgents = 3
			for _, network := range c.networks {
				cluster.spec.Networking.MachineNetwork = append(cluster.spec.Networking.MachineNetwork, hiveext.MachineNetworkEntry{CIDR: network})
			}
			if c.change != nil {
				c.change(&cluster.spec)
			}
			s.clusters[cluster.key] = cluster
			h := &host{state: models.HostStatusInsufficient, cluster: cluster.key, inventory: &models.Inventory{Interfaces: []*models.Interface{{}}}}
			machine := hosts.Hardware{NICs: []hosts.NIC{{Addresses: c.addresses}}}
			h.inventory = machine.Inventory()
			state, info, _ := s.nextHostState(h)
			if c.outside {
				g.Expect(state).To(Equal(models.HostStatusInsufficient))
				g.Expect(info).To(ContainSubstring("does not belong to"))
				return
			}
			g.Expect(state).To(Equal(models.HostStatusKnown))
		})
	}
}

func TestVIPsMustBeInMachineNetwork(t *testing.T) {
	g := NewWithT(t)
	spec := &hiveext.AgentClusterInstallSpec{APIVIPs: []string{"198.51.100.5"}, IngressVIPs: []string{"198.51.100.6"}}
	spec.Networking.MachineNetwork = []hiveext.MachineNetworkEntry{{CIDR: "192.0.2.0/24"}}
	g.Expect(strayVIP(spec)).To(ContainSubstring("does not belong"))
	spec.LoadBalancer = &hiveext.LoadBalancer{Type: hiveext.LoadBalancerTypeUserManaged}
	g.Expect(strayVIP(spec)).To(BeEmpty(), "a user-managed load balancer may have any address")
}

func TestDiscoveryIgnitionHasMirrorsAndStaticAddresses(t *testing.T) {
	g, s := NewWithT(t), newSimulator(t, Options{})
	network := aiv1beta1.NMStateConfig{}
	network.Spec.Interfaces = []*aiv1beta1.Interface{{Name: "eno1", MacAddress: "52:54:00:00:00:01"}}
	network.Spec.Config = json.RawMessage(`{"interfaces": [{
		"name": "eno1",
		"ipv4": {"enabled": true, "address": [{"ip": "192.0.2.21", "prefix-length": 24}]},
		"ipv6": {"enabled": false}
	}]}`)
	raw, err := s.discoveryIgnition(&infraEnv{
		networks: []aiv1beta1.NMStateConfig{network},
		mirrors:  map[string]string{registriesKey: "unqualified-search-registries = []\n", bundleKey: "certificate"},
	})
	g.Expect(err).NotTo(HaveOccurred())
	system, err := hosts.DecodeIgnition(raw)
	g.Expect(err).NotTo(HaveOccurred())
	for file, contents := range map[string]string{
		"/etc/containers/registries.conf":               "unqualified-search-registries = []\n",
		"/etc/pki/ca-trust/source/anchors/domain.crt":   "certificate",
		"/etc/assisted/network/host0/mac_interface.ini": "52:54:00:00:00:01=eno1\n",
		"/etc/assisted/network/host0/eno1.nmconnection": "[connection]\nid=eno1\n\n[ipv4]\naddress1=192.0.2.21/24\n\n[ipv6]\nmethod=disabled\n",
	} {
		g.Expect(system.Files[file].Contents).To(Equal(contents), file)
	}
}
