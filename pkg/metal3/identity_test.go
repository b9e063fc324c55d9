package metal3

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
)

func hostWith(bootMAC, serial string, nics ...string) *Host {
	host := &Host{}
	host.Spec.BootMACAddress = bootMAC
	host.Spec.BMC.Address = "redfish+https://admin:secret@bmc.example/redfish/v1/Systems/1?token=secret"
	if serial == "" && nics == nil {
		return host
	}
	host.Status.HardwareDetails = &Hardware{SystemVendor: Vendor{SerialNumber: serial}}
	for _, mac := range nics {
		host.Status.HardwareDetails.NIC = append(host.Status.HardwareDetails.NIC, NIC{MAC: mac})
	}
	return host
}

func agentWith(serial string, macs ...string) *aiv1beta1.Agent {
	agent := &aiv1beta1.Agent{}
	agent.Status.Inventory.SystemVendor.SerialNumber = serial
	for _, mac := range macs {
		agent.Status.Inventory.Interfaces = append(agent.Status.Inventory.Interfaces, aiv1beta1.HostInterface{MacAddress: mac})
	}
	return agent
}

func TestMismatch(t *testing.T) {
	for name, tc := range map[string]struct {
		host  *Host
		agent *aiv1beta1.Agent
		want  string
	}{
		"the boot MAC address in another case": {hostWith("52:54:00:AA:BB:CC", ""), agentWith("", "52:54:00:aa:bb:cc"), ""},
		"the boot MAC address with dashes":     {hostWith("52-54-00-aa-bb-cc", ""), agentWith("", "52:54:00:AA:BB:CC"), ""},
		"another NIC that was inspected together with the boot MAC address": {
			hostWith("02:00:00:00:00:01", "", "02:00:00:00:00:01", "02:00:00:00:00:02"), agentWith("", "02:00:00:00:00:09", "02:00:00:00:00:02"), "",
		},
		"inspected through another host's BMC: the boot MAC address is nowhere": {
			hostWith("02:00:00:00:00:01", "B2", "02:00:00:00:00:02"), agentWith("B2", "02:00:00:00:00:02"),
			"02:00:00:00:00:02 as the inspection did, but spec.bootMACAddress 02:00:00:00:00:01 is not among them: spec.bmc.address redfish+https://bmc.example/redfish/v1/Systems/1 ",
		},
		"inspected through another host's BMC, but the right host booted": {
			hostWith("02:00:00:00:00:01", "", "02:00:00:00:00:02"), agentWith("", "02:00:00:00:00:01"), "",
		},
		"any inspected NIC where no boot MAC address is stated": {
			hostWith("", "", "02:00:00:00:00:02", "02:00:00:00:00:03"), agentWith("", "02:00:00:00:00:09", "02:00:00:00:00:03"), "",
		},
		"no inspected NIC where no boot MAC address is stated": {
			hostWith("", "", "02:00:00:00:00:02"), agentWith("", "02:00:00:00:00:09"), "02:00:00:00:00:09, not one of 02:00:00:00:00:02",
		},
		"not inspected, another MAC address": {
			hostWith("02:00:00:00:00:01", ""), agentWith("", "02:00:00:00:00:02"), "02:00:00:00:00:02, not spec.bootMACAddress 02:00:00:00:00:01; spec.bmc.address",
		},
		"no MAC address in common": {
			hostWith("02:00:00:00:00:01", "", "02:00:00:00:00:01"), agentWith("", "02:00:00:00:00:02"), "not spec.bootMACAddress 02:00:00:00:00:01 nor another of the inspected 02:00:00:00:00:01",
		},
		"same MAC address, other serial":      {hostWith("02:00:00:00:00:01", "A1"), agentWith("B2", "02:00:00:00:00:01"), "serial number B2, not A1"},
		"serial in another case":              {hostWith("02:00:00:00:00:01", "ab1"), agentWith("AB1", "02:00:00:00:00:01"), ""},
		"serial known to one side only":       {hostWith("02:00:00:00:00:01", "A1"), agentWith("", "02:00:00:00:00:01"), ""},
		"serial that is a vendor's default":   {hostWith("02:00:00:00:00:01", "A1"), agentWith("To Be Filled By O.E.M.", "02:00:00:00:00:01"), ""},
		"a MAC address of zeros matches none": {hostWith("00:00:00:00:00:00", ""), agentWith("", "00:00:00:00:00:00"), "(none)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := IdentityOf(tc.host).Mismatch(AgentIdentity(tc.agent))
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
				NewWithT(t).Expect(IdentityOf(tc.host).Shares(AgentIdentity(tc.agent))).To(BeTrue(), "no host is the same without an address in common")
			} else {
				NewWithT(t).Expect(got).To(ContainSubstring(tc.want))
			}
		})
	}
}

// Several servers have the NIC between system and management controller with the same address.
func TestAddressesThatOtherHostsHaveProveNothing(t *testing.T) {
	const usb = "0a:ca:fe:f0:0d:04"
	host, other := hostWith("02:00:00:00:00:01", "", "02:00:00:00:00:01", "02:00:00:00:00:02", usb), hostWith("02:00:00:00:00:03", "", "02:00:00:00:00:03", usb)
	host.Name, other.Name = "host", "other"
	shared := SharedBy(host, []*Host{host, other})
	NewWithT(t).Expect(shared).To(Equal(Shared{MACs: []string{usb}}))
	silent, known := hostWith("", "", "02:00:00:00:00:01", usb), hostWith("02:00:00:00:00:01", "A1", "02:00:00:00:00:01", usb)
	for name, tc := range map[string]struct {
		host  *Host
		agent *aiv1beta1.Agent
		want  string
	}{
		"the host itself": {host, agentWith("", usb, "02:00:00:00:00:02", "02:00:00:00:00:01"), ""},
		"the host itself, with a bond of another NIC":          {host, agentWith("", usb, "02:00:00:00:00:02", "02:00:00:00:00:02"), ""},
		"another server with that NIC":                         {host, agentWith("", usb, "02:00:00:00:00:03"), "several BareMetalHosts have " + usb},
		"another server, where no boot MAC address is stated":  {silent, agentWith("", usb, "02:00:00:00:00:03"), "several BareMetalHosts have " + usb},
		"the host itself, where no boot MAC address is stated": {silent, agentWith("", usb, "02:00:00:00:00:01"), ""},
		"another server, and both have serial numbers":         {known, agentWith("B2", usb, "02:00:00:00:00:03"), "serial number B2, not A1"},
		"the same serial number, and another bond":             {known, agentWith("A1", usb, "02:00:00:00:00:09"), ""},
		"the same serial number, which is no one's": {
			hostWith("02:00:00:00:00:01", "0123456789", "02:00:00:00:00:01", usb), agentWith("0123456789", usb, "02:00:00:00:00:03"), "several BareMetalHosts have " + usb,
		},
		"no NIC in common": {host, agentWith("", "02:00:00:00:00:09"), "not spec.bootMACAddress"},
	} {
		t.Run(name, func(t *testing.T) {
			got := IdentityOf(tc.host).MismatchWithout(func() Shared { return shared }, AgentIdentity(tc.agent))
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
			} else {
				NewWithT(t).Expect(got).To(ContainSubstring(tc.want))
			}
		})
	}
}

// Makers who burn in no serial number leave texts of their own.
func TestASerialNumberThatOtherHostsHaveProvesNothing(t *testing.T) {
	const usb = "0a:ca:fe:f0:0d:04"
	host, other := hostWith("02:00:00:00:00:01", "A1", "02:00:00:00:00:01", usb), hostWith("02:00:00:00:00:03", "a1", "02:00:00:00:00:03", usb)
	host.Name, other.Name = "host", "other"
	shared := SharedBy(host, []*Host{host, other})
	g := NewWithT(t)
	g.Expect(shared.Serial).To(BeTrue())
	g.Expect(IdentityOf(host).MismatchWithout(func() Shared { return shared }, AgentIdentity(agentWith("A1", usb, "02:00:00:00:00:03")))).To(ContainSubstring("several BareMetalHosts have " + usb))
	g.Expect(IdentityOf(host).MismatchWithout(func() Shared { return shared }, AgentIdentity(agentWith("A1", usb, "02:00:00:00:00:01")))).To(BeEmpty(), "its boot MAC address is its own")
}

// All hosts of a namespace are compared for it.
func TestWhatOtherHostsHaveIsNotAskedForInVain(t *testing.T) {
	host := IdentityOf(hostWith("02:00:00:00:00:01", "A1", "02:00:00:00:00:01", "02:00:00:00:00:02"))
	asked := 0
	shared := func() Shared { asked++; return Shared{MACs: []string{"02:00:00:00:00:02"}} }
	g := NewWithT(t)
	g.Expect(host.MismatchWithout(shared, AgentIdentity(agentWith("", "02:00:00:00:00:02", "02:00:00:00:00:01")))).To(BeEmpty(), "its boot MAC address proves it")
	g.Expect(host.MismatchWithout(shared, AgentIdentity(agentWith("B2", "02:00:00:00:00:02")))).NotTo(BeEmpty(), "its serial number speaks against it")
	g.Expect(host.MismatchWithout(shared, AgentIdentity(agentWith("", "02:00:00:00:00:09")))).NotTo(BeEmpty(), "nothing speaks for it")
	g.Expect(asked).To(BeZero())
	g.Expect(host.MismatchWithout(shared, AgentIdentity(agentWith("", "02:00:00:00:00:02")))).NotTo(BeEmpty())
	g.Expect(asked).To(Equal(1))
}

func TestAddressesInCommon(t *testing.T) {
	g, host := NewWithT(t), IdentityOf(hostWith("02-00-00-00-00-0a", "", "02:00:00:00:00:0B"))
	g.Expect(host.Shares(AgentIdentity(agentWith("", "02:00:00:00:00:0A")))).To(BeTrue(), "the stated one")
	g.Expect(host.Shares(AgentIdentity(agentWith("", "02:00:00:00:00:0b")))).To(BeTrue(), "an inspected one")
	g.Expect(host.Shares(AgentIdentity(agentWith("", "02:00:00:00:00:0c")))).To(BeFalse())
}

func TestIdentityWithoutAddresses(t *testing.T) {
	NewWithT(t).Expect(IdentityOf(hostWith("", "S1")).MACs).To(BeEmpty())
}

func TestPublicBMC(t *testing.T) {
	for address, want := range map[string]string{
		"redfish-virtualmedia+http://u:p@10.0.0.1:8000/redfish/v1/Systems/1?x=1#y": "redfish-virtualmedia+http://10.0.0.1:8000/redfish/v1/Systems/1",
		"ipmi://10.0.0.1":         "ipmi://10.0.0.1",
		"u:p@10.0.0.1":            "10.0.0.1",
		"redfish://[fd00::1]/a@b": "redfish://[fd00::1]/a@b",
		"":                        "",
	} {
		NewWithT(t).Expect(publicBMC(address)).To(Equal(want), address)
	}
}
