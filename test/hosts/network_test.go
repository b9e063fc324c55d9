package hosts

import (
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

func TestMachinesGetAnAddressInEachNetwork(t *testing.T) {
	g, host := NewWithT(t), &metal3api.BareMetalHost{}
	networks, err := networksOf(host)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(networks).To(ConsistOf(defaultNetwork))
	WithNetworks("192.0.2.0/24", "2001:db8::/64")(0, host)
	networks, err = networksOf(host)
	g.Expect(err).NotTo(HaveOccurred())
	var leased []string
	for _, network := range networks {
		leased = append(leased, lease(network, 1))
	}
	g.Expect(leased).To(Equal([]string{"192.0.2.21/24", "2001:db8::15/64"}))

	machine := NewHardware("machine")
	machine.NICs[0].Addresses = leased
	inventory := machine.Inventory()
	g.Expect(inventory.Interfaces[0].IPV4Addresses).To(ConsistOf("192.0.2.21/24"))
	g.Expect(inventory.Interfaces[0].IPV6Addresses).To(ConsistOf("2001:db8::15/64"))
	g.Expect([]string{inventory.Routes[0].Gateway, inventory.Routes[1].Gateway}).To(Equal([]string{"192.0.2.1", "2001:db8::1"}))
	g.Expect(addresses(machine)).To(Equal([]corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "192.0.2.21"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::15"},
	}))

	WithNetworks()(0, host)
	g.Expect(networksOf(host)).To(BeEmpty(), "no network leases an address")
	WithNetworks("192.0.2.0")(0, host)
	_, err = networksOf(host)
	g.Expect(err).To(HaveOccurred())
}

func TestMachinesUseTheStaticAddressesOfTheirMAC(t *testing.T) {
	g := NewWithT(t)
	system := &Ignition{Files: map[string]File{
		"/etc/assisted/network/host0/mac_interface.ini": {Contents: "02:00:00:00:00:01=eno1\n02:00:00:00:00:02=eno2\n"},
		"/etc/assisted/network/host0/eno1.nmconnection": {
			Contents: "[ipv4]\naddress1=192.0.2.7/24,192.0.2.1\nmethod=manual\n\n[ipv6]\naddress1=2001:db8::7/64\n",
		},
		"/etc/assisted/network/host0/eno2.nmconnection":   {Contents: "[ipv4]\nmethod=disabled\n"},
		"/etc/assisted/network/host1/mac_interface.ini":   {Contents: "02:00:00:00:00:03=eno1\n"},
		"/etc/assisted/network/host1/eno1.nmconnection":   {Contents: "[ipv4]\naddress1=192.0.2.8/24\n"},
		"/etc/assisted/network/host1/unused.nmconnection": {Contents: "[ipv4]\naddress1=192.0.2.9/24\n"},
	}}
	machine := &Host{hardware: Hardware{NICs: []NIC{{Name: "eth0", MAC: "02:00:00:00:00:01"}, {Name: "eth1", MAC: "02:00:00:00:00:02"}}}}
	machine.configureNetwork(system)
	g.Expect(machine.Hardware().NICs).To(Equal([]NIC{
		{Name: "eno1", MAC: "02:00:00:00:00:01", Addresses: []string{"192.0.2.7/24", "2001:db8::7/64"}}, {Name: "eno2", MAC: "02:00:00:00:00:02"},
	}))
	stranger := &Host{hardware: Hardware{NICs: []NIC{{Name: "eth0", MAC: "02:00:00:00:00:ff"}}}}
	stranger.configureNetwork(system)
	g.Expect(stranger.Hardware().NICs[0].Addresses).To(BeEmpty())
}
