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
	// networksAnnotation of a BareMetalHost lists the networks of its first NIC.
	networksAnnotation = "laboratory.example.com/networks"
	// defaultNetwork is the network of machines without that annotation.
	defaultNetwork = "192.168.111.0/24"
	// The first address for machines in each network, and the number of their addresses. Addresses before are
	// for routers and virtual addresses.
	firstLease, leasesOfNetwork = 20, 220

	// staticNetworkFolder is where assisted-service stores static addresses in a discovery system. Each host has
	// a folder with a table of its interfaces, and a connection profile of NetworkManager for each of them
	// (assisted-service, internal/constants/scripts.go).
	staticNetworkFolder = "/etc/assisted/network/"
	// interfacesFile has a line <MAC address>=<interface> for each interface.
	interfacesFile = "mac_interface.ini"
	// profileSuffix is the suffix of the file of a connection profile.
	profileSuffix = ".nmconnection"

	familyIPv4, familyIPv6 = 2, 10 // AF_INET and AF_INET6 of Linux
)

// WithNetworks connects the first NIC of the machines to these networks (CIDRs), each of which leases it an
// address. Without any network the NIC has no address before it is configured.
func WithNetworks(cidrs ...string) HostOption {
	return func(_ int, host *metal3api.BareMetalHost) {
		if host.Annotations == nil {
			host.Annotations = map[string]string{}
		}
		host.Annotations[networksAnnotation] = strings.Join(cidrs, ",")
	}
}

// networksOf returns the networks of the machine behind a BareMetalHost.
func networksOf(host *metal3api.BareMetalHost) ([]string, error) {
	annotation, ok := host.Annotations[networksAnnotation]
	if !ok {
		return []string{defaultNetwork}, nil
	}
	networks := strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' })
	for _, network := range networks {
		if _, err := netip.ParsePrefix(network); err != nil {
			return nil, fmt.Errorf("cannot read annotation %s: %w", networksAnnotation, err)
		}
	}
	return networks, nil
}

// lease returns an address in a network, different for each of the first machines.
func lease(network string, number int) string {
	prefix := netip.MustParsePrefix(network)
	return netip.PrefixFrom(inNetwork(prefix, byte(firstLease+number%leasesOfNetwork)), prefix.Bits()).String()
}

// inNetwork returns the address of a network with the given last byte.
func inNetwork(network netip.Prefix, last byte) netip.Addr {
	bytes := network.Masked().Addr().AsSlice()
	bytes[len(bytes)-1] |= last
	address, _ := netip.AddrFromSlice(bytes) // always 4 or 16 bytes
	return address
}

// firstAddress returns the first address of the NIC without its prefix length; empty if it has none.
func (n NIC) firstAddress() string {
	if len(n.Addresses) == 0 {
		return ""
	}
	return hostAddress(n.Addresses[0])
}

// byFamily returns the addresses of the NIC in CIDR form; the lists are not nil.
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

// defaultRoutes returns routes via the first address of each network of the NIC.
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

// configureNetwork sets the addresses of the NICs from the network configuration of the discovery system. The
// installed node keeps them.
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

// staticAddresses returns the addresses of a connection profile of NetworkManager (nm-settings-keyfile(5)):
// address1=192.0.2.7/24, optionally followed by a gateway.
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

// entries returns the lines key=value of a file, in their order: a key may occur in several sections.
func entries(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !yield(key, value) {
				return
			}
		}
	}
}
