package hosts

import (
	"fmt"
	"iter"
	"net/netip"
	"path"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/openshift/assisted-service/models"
)

const (
	// networksAnnotation of a BareMetalHost names the networks of its first NIC.
	networksAnnotation = "laboratory.example.com/networks"
	// defaultNetwork is where machines are of which nobody says anything else.
	defaultNetwork = "192.168.111.0/24"
	// Of each network the machines have these addresses, beginning with the first: those before are for routers and virtual addresses.
	firstLease, leasesOfNetwork = 20, 220

	// staticNetworkFolder is where assisted-service puts static addresses into a discovery system: for each host a
	// folder with a table of its interfaces, and a connection profile of NetworkManager for each of them
	// (assisted-service, internal/constants/scripts.go).
	staticNetworkFolder = "/etc/assisted/network/"
	// interfacesFile has a line <MAC address>=<interface> for each of them.
	interfacesFile = "mac_interface.ini"
	// profileSuffix is how the file of a connection profile ends.
	profileSuffix = ".nmconnection"

	familyIPv4, familyIPv6 = 2, 10 // AF_INET and AF_INET6 of Linux
)

// WithNetworks puts the first NIC of the machines into these networks (CIDRs), of which each leases an address to it;
// without any it has none before somebody configures it.
func WithNetworks(cidrs ...string) HostOption {
	return func(_ int, host *metal3api.BareMetalHost) {
		if host.Annotations == nil {
			host.Annotations = map[string]string{}
		}
		host.Annotations[networksAnnotation] = strings.Join(cidrs, ",")
	}
}

// networksOf are the networks of the machine behind a BareMetalHost.
func networksOf(host *metal3api.BareMetalHost) ([]string, error) {
	said, ok := host.Annotations[networksAnnotation]
	if !ok {
		return []string{defaultNetwork}, nil
	}
	networks := strings.FieldsFunc(said, func(r rune) bool { return r == ',' })
	for _, network := range networks {
		if _, err := netip.ParsePrefix(network); err != nil {
			return nil, fmt.Errorf("cannot read annotation %s: %w", networksAnnotation, err)
		}
	}
	return networks, nil
}

// lease is an address of a network, another one for each of the first machines.
func lease(network string, number int) string {
	prefix := netip.MustParsePrefix(network)
	return netip.PrefixFrom(inNetwork(prefix, byte(firstLease+number%leasesOfNetwork)), prefix.Bits()).String()
}

// inNetwork is the address of a network whose last byte is given.
func inNetwork(network netip.Prefix, last byte) netip.Addr {
	bytes := network.Masked().Addr().AsSlice()
	bytes[len(bytes)-1] |= last
	address, _ := netip.AddrFromSlice(bytes) // 4 or 16 bytes, as they were
	return address
}

// firstAddress is that of the NIC without its prefix length; empty when it has none.
func (n NIC) firstAddress() string {
	if len(n.Addresses) == 0 {
		return ""
	}
	return hostAddress(n.Addresses[0])
}

// byFamily are the addresses of the NIC in CIDR form; the lists are not nil.
func (n NIC) byFamily() (ipv4, ipv6 []string) {
	ipv4, ipv6 = []string{}, []string{}
	for _, address := range n.Addresses {
		if strings.Contains(address, ":") {
			ipv6 = append(ipv6, address)
		} else {
			ipv4 = append(ipv4, address)
		}
	}
	return ipv4, ipv6
}

// defaultRoutes lead to the first address of each network of the NIC.
func (n NIC) defaultRoutes() []*models.Route {
	var routes []*models.Route
	for _, address := range n.Addresses {
		prefix, err := netip.ParsePrefix(address)
		if err != nil {
			continue
		}
		route := &models.Route{Destination: "0.0.0.0", Family: familyIPv4, Gateway: inNetwork(prefix, 1).String(), Interface: n.Name, Metric: 600}
		if prefix.Addr().Is6() {
			route.Destination, route.Family = "::", familyIPv6
		}
		routes = append(routes, route)
	}
	return routes
}

// configureNetwork gives the NICs the addresses that the discovery system has for them, as its network configuration
// does. The installed node keeps them.
func (h *Host) configureNetwork(system *Ignition) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for file, table := range system.Files {
		if !strings.HasPrefix(file, staticNetworkFolder) || path.Base(file) != interfacesFile {
			continue
		}
		interfaces := map[string]string{}
		for mac, name := range entries(table.Contents) {
			interfaces[strings.ToLower(mac)] = name
		}
		for i := range h.hardware.NICs {
			nic := &h.hardware.NICs[i]
			name, ours := interfaces[strings.ToLower(nic.MAC)]
			if !ours {
				continue
			}
			nic.Name = name
			nic.Addresses = staticAddresses(system.Files[path.Join(path.Dir(file), name+profileSuffix)].Contents)
		}
	}
}

// staticAddresses are those of a connection profile of NetworkManager (nm-settings-keyfile(5)): address1=192.0.2.7/24,
// with or without a gateway behind it.
func staticAddresses(profile string) []string {
	var addresses []string
	for key, value := range entries(profile) {
		if strings.HasPrefix(key, "address") {
			address, _, _ := strings.Cut(value, ",")
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// entries are the lines key=value of a file, in their order: a key may be in several sections.
func entries(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !yield(key, value) {
				return
			}
		}
	}
}
