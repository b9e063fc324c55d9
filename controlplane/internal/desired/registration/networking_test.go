package registration

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

type networks struct {
	machines, vips, pods, services []string
	// balanced is true with a user-managed load balancer.
	balanced bool
}

func (n networks) install(t *testing.T) (pods, services []string, err error) {
	t.Helper()
	f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.Config.MachineNetwork, cp.Spec.Config.APIVIPs, cp.Spec.Config.IngressVIPs = n.machines, n.vips, n.vips
	})
	if n.balanced {
		f.ControlPlane.Spec.Config.LoadBalancer = &controlplanev1.LoadBalancer{Type: "UserManaged"}
	}
	f.Cluster.Spec.ClusterNetwork.Pods.CIDRBlocks, f.Cluster.Spec.ClusterNetwork.Services.CIDRBlocks = n.pods, n.services
	install, err := AgentClusterInstall(f, "lab-c1-12345678", semver.MustParse("4.19.3"))
	if err != nil {
		return nil, nil, err
	}
	for _, network := range install.Spec.Networking.ClusterNetwork {
		pods = append(pods, network.CIDR)
	}
	return pods, install.Spec.Networking.ServiceNetwork, nil
}

// Default networks have the address families of the networks that the user sets. With IPv4 defaults no IPv6
// cluster could be installed.
func TestDefaultNetworksHaveTheFamiliesOfTheCluster(t *testing.T) {
	v4, v6, both := []string{
		"10.128.0.0/14",
		"172.30.0.0/16",
	}, []string{
		"fd01::/48",
		"fd02::/112",
	}, []string{
		"10.128.0.0/14",
		"fd01::/48",
		"172.30.0.0/16",
		"fd02::/112",
	}
	for name, tc := range map[string]struct {
		networks
		want []string
	}{
		"nothing set":         {networks{}, v4},
		"IPv4 machines":       {networks{machines: []string{"192.168.111.0/24"}}, v4},
		"IPv6 machines":       {networks{machines: []string{"2001:db8::/64"}}, v6},
		"IPv6 VIPs":           {networks{vips: []string{"2001:db8::5"}}, v6},
		"dual-stack machines": {networks{machines: []string{"192.168.111.0/24", "2001:db8::/64"}}, both},
		"dual-stack machines, IPv6 first": {
			networks{machines: []string{"2001:db8::/64", "192.168.111.0/24"}}, []string{"fd01::/48", "10.128.0.0/14", "fd02::/112", "172.30.0.0/16"},
		},
		"dual-stack machines, an IPv4 VIP": {
			networks{machines: []string{"192.168.111.0/24", "2001:db8::/64"}, vips: []string{"192.168.111.5"}}, both,
		},
		"dual-stack Pods": {
			networks{machines: []string{"192.168.111.0/24", "2001:db8::/64"}, pods: []string{"10.0.0.0/14", "fd05::/48"}},
			[]string{"10.0.0.0/14", "fd05::/48", "172.30.0.0/16", "fd02::/112"},
		},
		"IPv6 Services alone": {networks{services: []string{"fd07::/112"}}, []string{"fd01::/48", "fd07::/112"}},
		"two networks, user's load balancer": {
			networks{machines: []string{"2001:db8::/64", "2001:db8:1::/64"}, vips: []string{"2001:db8:1::5"}, balanced: true}, v6,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pods, services, err := tc.install(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(append(pods, services...)).To(Equal(tc.want))
		})
	}
}

// Networks that assisted-service refuses at the registration, or when all hosts run, are refused before a
// server is started.
func TestInvalidNetworksAreRefused(t *testing.T) {
	v4, v6, both := []string{"192.168.111.0/24"}, []string{"2001:db8::/64"}, []string{"192.168.111.0/24", "2001:db8::/64"}
	for name, tc := range map[string]struct {
		networks
		refused string
	}{
		"IPv4 Pods on IPv6 machines": {
			networks{machines: v6, pods: []string{"10.128.0.0/14"}},
			"the networks of the cluster have different address families: config.machineNetwork IPv6, VIPs not set, Pods IPv4, Services IPv6",
		},
		"IPv6 Services, IPv4 Pods": {networks{pods: []string{"10.0.0.0/14"}, services: []string{"fd02::/112"}}, "Pods IPv4, Services IPv6"},
		"dual-stack Pods, IPv4 Services": {
			networks{pods: []string{"10.0.0.0/14", "fd01::/48"}, services: []string{"172.30.0.0/16"}}, "Pods IPv4 and IPv6, Services IPv4",
		},
		"families in another order": {
			networks{pods: []string{"10.0.0.0/14", "fd01::/48"}, services: []string{"fd02::/112", "172.30.0.0/16"}}, "Services IPv6 and IPv4",
		},
		"an IPv6 VIP of an IPv4 cluster": {
			networks{vips: []string{"2001:db8::5"}, pods: []string{"10.0.0.0/14"}, services: []string{"172.30.0.0/16"}}, "VIPs IPv6, Pods IPv4",
		},
		"the network address as VIP": {
			networks{machines: v4, vips: []string{"192.168.111.0"}}, "VIP 192.168.111.0 is the network address of machineNetwork 192.168.111.0/24",
		},
		"the broadcast address as VIP": {
			networks{machines: v4, vips: []string{"192.168.111.255"}},
			"VIP 192.168.111.255 is the broadcast address of machineNetwork 192.168.111.0/24",
		},
		"the IPv6 address of any router": {
			networks{machines: v6, vips: []string{"2001:db8:0::"}}, "VIP 2001:db8:0:: is the network address of machineNetwork 2001:db8::/64",
		},
		"the last IPv6 address":      {networks{machines: v6, vips: []string{"2001:db8::ffff:ffff:ffff:ffff"}}, ""},
		"a network of two addresses": {networks{machines: []string{"192.168.111.4/31"}, vips: []string{"192.168.111.5"}}, ""},
		"a network of one address":   {networks{machines: []string{"192.168.111.5/32"}, vips: []string{"192.168.111.5"}}, ""},
		"the last IPv4 address": {
			networks{machines: []string{"255.255.255.0/24"}, vips: []string{"255.255.255.255"}}, "is the broadcast address",
		},
		"an address of another network": {
			networks{machines: []string{"192.168.111.0/24", "10.0.0.0/16"}, vips: []string{"10.0.0.255"}, balanced: true}, "",
		},
		"dual-stack without machines": {
			networks{vips: []string{"192.168.111.5"}, pods: []string{"10.0.0.0/14", "fd05::/48"}},
			"a dual-stack cluster needs the networks of its hosts. Set config.machineNetwork",
		},
		"two VIPs without machines": {
			networks{vips: []string{"192.168.111.5", "2001:db8::5"}}, "a dual-stack cluster needs the networks of its hosts",
		},
		"two networks of a family": {
			networks{machines: []string{"2001:db8::/64", "2001:db8:1::/64"}}, "config.machineNetwork has 2 networks of one address family",
		},
		"three networks of two families": {
			networks{machines: []string{"192.168.111.0/24", "192.168.112.0/24", "2001:db8::/64"}}, "and not 3 of hosts, 2 of Pods and 2 of Services",
		},
		"two IPv4 networks of Pods": {
			networks{machines: both, pods: []string{"10.0.0.0/16", "fd01::/48", "10.1.0.0/16"}}, "and not 2 of hosts, 3 of Pods and 2 of Services",
		},
		"an IPv6 VIP on IPv4 first": {
			networks{machines: both, vips: []string{"2001:db8::5"}},
			"VIP 2001:db8::5 is not in the network of config.machineNetwork at the same place",
		},
		"dual-stack with own balancer": {
			networks{machines: both, vips: []string{"192.168.111.5"}, balanced: true},
			"a cluster with a user-managed load balancer cannot be dual-stack",
		},
		"VIPs in another order": {
			networks{machines: both, vips: []string{"2001:db8::5", "192.168.111.5"}},
			"is not in the network of config.machineNetwork at the same place",
		},
		"VIPs in the same order": {networks{machines: both, vips: []string{"192.168.111.5", "2001:db8::5"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, _, err := tc.install(t)
			if tc.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.refused)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 512))
		})
	}
}
