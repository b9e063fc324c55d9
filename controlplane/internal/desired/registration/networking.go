package registration

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// family is the address family of a network.
type family string

const (
	ipv4 family = "IPv4"
	ipv6 family = "IPv6"
)

// Default networks for each address family: the defaults of OpenShift's installer for IPv4, and the networks
// of OpenShift's documentation for IPv6, which has no default.
var (
	defaultClusterNetwork = map[family]string{ipv4: "10.128.0.0/14", ipv6: "fd01::/48"}
	defaultServiceNetwork = map[family]string{ipv4: "172.30.0.0/16", ipv6: "fd02::/112"}
)

const (
	// Prefixes of the network of a Node within the cluster network: the defaults of OpenShift's installer.
	hostPrefixIPv4 = 23
	hostPrefixIPv6 = 64
)

// networking returns the networks of the cluster. Networks of Pods or Services that the Cluster does not set
// have the address families of its machine networks. Without machine networks they have those of the other
// network, or else of its VIPs. With different families the installation fails only when all hosts run.
func networking(f *facts.Facts) hiveext.Networking {
	config, cluster := &f.ControlPlane.Spec.Config, &f.Cluster.Spec.ClusterNetwork
	pods, services := cluster.Pods.CIDRBlocks, cluster.Services.CIDRBlocks
	vips := slices.Concat(config.APIVIPs, config.IngressVIPs)
	n := hiveext.Networking{NetworkType: config.NetworkType, UserManagedNetworking: ptr.To(!onBareMetal(config)), ServiceNetwork: services}
	if len(services) == 0 {
		n.ServiceNetwork = defaultNetworks(defaultServiceNetwork, config.MachineNetwork, pods, vips)
	}
	if len(pods) == 0 {
		pods = defaultNetworks(defaultClusterNetwork, config.MachineNetwork, services, vips)
	}
	for _, cidr := range pods {
		n.ClusterNetwork = append(n.ClusterNetwork, hiveext.ClusterNetworkEntry{CIDR: cidr, HostPrefix: hostPrefix(cidr, config.HostPrefix)})
	}
	for _, cidr := range config.MachineNetwork {
		n.MachineNetwork = append(n.MachineNetwork, hiveext.MachineNetworkEntry{CIDR: cidr})
	}
	return n
}

// defaultNetworks returns the default for each family of the first list that has any, or else that of IPv4.
func defaultNetworks(defaults map[family]string, stated ...[]string) []string {
	for _, list := range stated {
		var networks []string
		for _, of := range familiesOf(list) {
			networks = append(networks, defaults[of])
		}
		if len(networks) > 0 {
			return networks
		}
	}
	return []string{defaults[ipv4]}
}

// familiesOf returns the address families of addresses or networks in the order of their first member. It
// ignores invalid texts, which assisted-service reports.
func familiesOf(texts []string) []family {
	var families []family
	for _, text := range texts {
		address, _, _ := strings.Cut(text, "/")
		parsed, err := netip.ParseAddr(address)
		if err != nil {
			continue
		}
		of := ipv6
		if parsed.Is4() {
			of = ipv4
		}
		if !slices.Contains(families, of) {
			families = append(families, of)
		}
	}
	return families
}

// invalidNetworks returns why no cluster can be installed with these networks. assisted-service accepts most
// of them, and reports the reason only when all hosts run, or when the installation fails.
func invalidNetworks(f *facts.Facts, n *hiveext.Networking) error {
	if err := oversizedHostPrefix(n.ClusterNetwork); err != nil {
		return err
	}
	if err := differentFamilies(f, n); err != nil {
		return err
	}
	if err := unregistrable(&f.ControlPlane.Spec.Config, n); err != nil {
		return err
	}
	return unusableVIP(&f.ControlPlane.Spec.Config)
}

// differentFamilies compares the ordered address families of all networks, as assisted-service does
// (networks-same-address-families of its internal/cluster), and those of the VIPs.
func differentFamilies(f *facts.Facts, n *hiveext.Networking) error {
	config := &f.ControlPlane.Spec.Config
	var podNetworks []string
	for _, network := range n.ClusterNetwork {
		podNetworks = append(podNetworks, network.CIDR)
	}
	pods, services, machines := familiesOf(podNetworks), familiesOf(n.ServiceNetwork), familiesOf(config.MachineNetwork)
	vips := familiesOf(slices.Concat(config.APIVIPs, config.IngressVIPs))
	foreign := slices.DeleteFunc(slices.Clone(vips), func(of family) bool { return slices.Contains(pods, of) })
	if slices.Equal(pods, services) && (len(machines) == 0 || slices.Equal(machines, pods)) && len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("the networks of the cluster have different address families: config.machineNetwork %s, VIPs %s, Pods %s, Services %s. "+
		"Give config.machineNetwork, and spec.clusterNetwork.pods and spec.clusterNetwork.services of the Cluster, the same families in the "+
		"same order",
		familyNames(machines), familyNames(vips), familyNames(pods), familyNames(services))
}

// unregistrable returns why assisted-service does not register a cluster with these networks. The rules are
// those of ValidateDualStackNetworks and validateVIPAddresses of its internal/cluster/validations, the same
// in April 2025 and in August 2026. They ignore which family is first: services of 2025 refuse IPv6, those of
// 2026 accept it.
func unregistrable(config *controlplanev1.InstallationConfig, n *hiveext.Networking) error {
	userManaged := userManagedLoadBalancer(config)
	dual := len(familiesOf(n.ServiceNetwork)) > 1 // those of Pods and machines are the same
	switch machines := len(config.MachineNetwork); {
	case dual && userManaged: // "User Managed Load Balancer ... is not compatible with Dual-Stack", in its internal/featuresupport
		return errors.New(
			"a cluster with a user-managed load balancer cannot be dual-stack. Give config.machineNetwork and spec.clusterNetwork of the " +
				"Cluster networks of one address family",
		)
	case dual && machines == 0:
		return errors.New("a dual-stack cluster needs the networks of its hosts. Set config.machineNetwork to one IPv4 and one IPv6 network")
	case dual && (machines != 2 || len(n.ServiceNetwork) != 2 || len(n.ClusterNetwork) != 2):
		return fmt.Errorf(
			"a dual-stack cluster has one IPv4 and one IPv6 network of each kind, and not %d of hosts, %d of Pods and %d of Services. "+
				"Correct config.machineNetwork, or spec.clusterNetwork of the Cluster",
			machines,
			len(n.ClusterNetwork),
			len(n.ServiceNetwork),
		)
	case !dual && !userManaged && machines > 1:
		return fmt.Errorf(
			"config.machineNetwork has %d networks of one address family, which need a user-managed load balancer. Keep one network, or set "+
				"config.loadBalancer.type to UserManaged",
			machines,
		)
	case machines == 0 || userManaged:
		return nil
	}
	for _, vips := range [][]string{config.APIVIPs, config.IngressVIPs} {
		for i, vip := range vips {
			if i >= len(config.MachineNetwork) || !contains(config.MachineNetwork[i], vip) {
				return fmt.Errorf(
					"VIP %s is not in the network of config.machineNetwork at the same place. Give VIPs and machineNetwork the same order of "+
						"address families",
					vip,
				)
			}
		}
	}
	return nil
}

// contains reports whether a network contains an address. It is true for invalid texts, which
// assisted-service reports.
func contains(network, address string) bool {
	prefix, prefixErr := netip.ParsePrefix(network)
	addr, addrErr := netip.ParseAddr(address)
	return prefixErr != nil || addrErr != nil || prefix.Contains(addr)
}

func familyNames(families []family) string {
	if len(families) == 0 {
		return "not set"
	}
	var names []string
	for _, of := range families {
		names = append(names, string(of))
	}
	return strings.Join(names, " and ")
}

// unusableVIP returns an error for VIPs that no host can have. One is the address of a machine network
// itself, which in IPv6 is that of any router (RFC 4291, 2.6.1). The other is the broadcast address of IPv4.
func unusableVIP(config *controlplanev1.InstallationConfig) error {
	for _, network := range config.MachineNetwork {
		prefix, err := netip.ParsePrefix(network)
		if err != nil || prefix.Addr().BitLen()-prefix.Bits() < 2 { // /31, /32, /127 and /128 have neither
			continue
		}
		for _, vip := range slices.Concat(config.APIVIPs, config.IngressVIPs) {
			switch address, err := netip.ParseAddr(vip); {
			case err != nil:
			case address == prefix.Masked().Addr():
				return fmt.Errorf(
					"VIP %s is the network address of machineNetwork %s, which no host can have. Correct config.apiVIPs or config.ingressVIPs",
					vip,
					network,
				)
			case address.Is4() && prefix.Contains(address) && !prefix.Contains(address.Next()):
				return fmt.Errorf(
					"VIP %s is the broadcast address of machineNetwork %s, which no host can have. Correct config.apiVIPs or config.ingressVIPs",
					vip,
					network,
				)
			}
		}
	}
	return nil
}

// hostPrefix returns the prefix of the network of a Node: the configured one, else the installer's default,
// or the whole network if that is smaller.
func hostPrefix(cidr string, configured *controlplanev1.HostPrefix) int32 {
	wanted := ptr.Deref(configured, controlplanev1.HostPrefix{})
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return cmp.Or(wanted.IPv4, hostPrefixIPv4)
	}
	if prefix.Addr().Is6() {
		return cmp.Or(wanted.IPv6, int32(max(hostPrefixIPv6, prefix.Bits()))) //nolint:gosec // at most 128
	}
	return cmp.Or(wanted.IPv4, int32(max(hostPrefixIPv4, prefix.Bits()))) //nolint:gosec // at most 32
}

// oversizedHostPrefix returns an error if the network of a Node is larger than its cluster network.
func oversizedHostPrefix(networks []hiveext.ClusterNetworkEntry) error {
	for _, network := range networks {
		if prefix, err := netip.ParsePrefix(network.CIDR); err == nil && int(network.HostPrefix) < prefix.Bits() {
			return fmt.Errorf(
				"a Node cannot get a /%d of network %s: correct config.hostPrefix, or spec.clusterNetwork.pods of the Cluster",
				network.HostPrefix,
				network.CIDR,
			)
		}
	}
	return nil
}
