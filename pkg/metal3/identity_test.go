package metal3

import (
	"testing"

	. "github.com/onsi/gomega"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
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
		"inspected through another host's BMC: the boot MAC address is missing": {
			hostWith("02:00:00:00:00:01", "B2", "02:00:00:00:00:02"), agentWith("B2", "02:00:00:00:00:02"),
			"02:00:00:00:00:02 as the inspection did, but spec.bootMACAddress 02:00:00:00:00:01 is not among them: spec.bmc.address " +
				"redfish+https://bmc.example/redfish/v1/Systems/1 ",
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
			hostWith("02:00:00:00:00:01", ""),
			agentWith("", "02:00:00:00:00:02"),
			"02:00:00:00:00:02, not spec.bootMACAddress 02:00:00:00:00:01; spec.bmc.address",
		},
		"no MAC address in common": {
			hostWith("02:00:00:00:00:01", "", "02:00:00:00:00:01"),
			agentWith("", "02:00:00:00:00:02"),
			"not spec.bootMACAddress 02:00:00:00:00:01 nor another of the inspected 02:00:00:00:00:01",
		},
		"same MAC address, other serial": {
			hostWith("02:00:00:00:00:01", "A1"), agentWith("B2", "02:00:00:00:00:01"), "serial number B2, not A1",
		},
		"serial in another case":        {hostWith("02:00:00:00:00:01", "ab1"), agentWith("AB1", "02:00:00:00:00:01"), ""},
		"serial known to one side only": {hostWith("02:00:00:00:00:01", "A1"), agentWith("", "02:00:00:00:00:01"), ""},
		"serial that is a vendor's default": {
			hostWith("02:00:00:00:00:01", "A1"), agentWith("To Be Filled By O.E.M.", "02:00:00:00:00:01"), "",
		},
		"a MAC address of zeros matches none": {hostWith("00:00:00:00:00:00", ""), agentWith("", "00:00:00:00:00:00"), "(none)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := IdentityOf(tc.host).Mismatch(AgentIdentity(tc.agent))
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
				NewWithT(t).Expect(IdentityOf(tc.host).SharesMAC(AgentIdentity(tc.agent))).To(BeTrue(), "a match requires a common address")
			} else {
				NewWithT(t).Expect(got).To(ContainSubstring(tc.want))
			}
		})
	}
}

// The NIC between system and management controller has the same address in several servers.
func TestSharedAddressesDoNotIdentifyAHost(t *testing.T) {
	const usb = "0a:ca:fe:f0:0d:04"
	host, other := hostWith(
		"02:00:00:00:00:01",
		"",
		"02:00:00:00:00:01",
		"02:00:00:00:00:02",
		usb,
	), hostWith(
		"02:00:00:00:00:03",
		"",
		"02:00:00:00:00:03",
		usb,
	)
	host.Name, other.Name = "host", "other"
	shared := SharedBy(host, []*Host{host, other})
	NewWithT(t).Expect(shared).To(Equal(SharedIdentity{MACs: []string{usb}}))
	silent, known := hostWith("", "", "02:00:00:00:00:01", usb), hostWith("02:00:00:00:00:01", "A1", "02:00:00:00:00:01", usb)
	for name, tc := range map[string]struct {
		host  *Host
		agent *aiv1beta1.Agent
		want  string
	}{
		"the host itself": {host, agentWith("", usb, "02:00:00:00:00:02", "02:00:00:00:00:01"), ""},
		"the host itself, with a bond of another NIC": {host, agentWith("", usb, "02:00:00:00:00:02", "02:00:00:00:00:02"), ""},
		"another server with that NIC": {
			host, agentWith("", usb, "02:00:00:00:00:03"), "several BareMetalHosts have " + usb,
		},
		"another server, where no boot MAC address is stated": {
			silent, agentWith("", usb, "02:00:00:00:00:03"), "several BareMetalHosts have " + usb,
		},
		"the host itself, where no boot MAC address is stated": {silent, agentWith("", usb, "02:00:00:00:00:01"), ""},
		"another server, and both have serial numbers":         {known, agentWith("B2", usb, "02:00:00:00:00:03"), "serial number B2, not A1"},
		"the same serial number, and another bond":             {known, agentWith("A1", usb, "02:00:00:00:00:09"), ""},
		"the same placeholder as serial number": {
			hostWith("02:00:00:00:00:01", "0123456789", "02:00:00:00:00:01", usb),
			agentWith("0123456789", usb, "02:00:00:00:00:03"),
			"several BareMetalHosts have " + usb,
		},
		"no NIC in common": {host, agentWith("", "02:00:00:00:00:09"), "not spec.bootMACAddress"},
	} {
		t.Run(name, func(t *testing.T) {
			got := IdentityOf(tc.host).MismatchIgnoringShared(func() SharedIdentity { return shared }, AgentIdentity(tc.agent))
			if tc.want == "" {
				NewWithT(t).Expect(got).To(BeEmpty())
			} else {
				NewWithT(t).Expect(got).To(ContainSubstring(tc.want))
			}
		})
	}
}

// Some vendors set a fixed text instead of a serial number.
func TestSharedSerialNumberDoesNotIdentifyAHost(t *testing.T) {
	const usb = "0a:ca:fe:f0:0d:04"
	host, other := hostWith("02:00:00:00:00:01", "A1", "02:00:00:00:00:01", usb), hostWith("02:00:00:00:00:03", "a1", "02:00:00:00:00:03", usb)
	host.Name, other.Name = "host", "other"
	shared := SharedBy(host, []*Host{host, other})
	g := NewWithT(t)
	g.Expect(shared.Serial).To(BeTrue())
	g.Expect(
		IdentityOf(host).MismatchIgnoringShared(
			func() SharedIdentity { return shared }, AgentIdentity(agentWith("A1", usb, "02:00:00:00:00:03")),
		),
	).
		To(ContainSubstring("several BareMetalHosts have " + usb))
	g.Expect(
		IdentityOf(host).MismatchIgnoringShared(
			func() SharedIdentity { return shared }, AgentIdentity(agentWith("A1", usb, "02:00:00:00:00:01")),
		),
	).
		To(BeEmpty(), "the boot MAC address is unique")
}

// Shared properties require a comparison of all hosts of a namespace.
func TestHostsAreComparedOnlyWhenNeeded(t *testing.T) {
	host := IdentityOf(hostWith("02:00:00:00:00:01", "A1", "02:00:00:00:00:01", "02:00:00:00:00:02"))
	calls := 0
	shared := func() SharedIdentity { calls++; return SharedIdentity{MACs: []string{"02:00:00:00:00:02"}} }
	g := NewWithT(t)
	g.Expect(host.MismatchIgnoringShared(shared, AgentIdentity(agentWith("", "02:00:00:00:00:02", "02:00:00:00:00:01")))).
		To(BeEmpty(), "the boot MAC address matches")
	g.Expect(host.MismatchIgnoringShared(shared, AgentIdentity(agentWith("B2", "02:00:00:00:00:02")))).
		NotTo(BeEmpty(), "the serial number differs")
	g.Expect(host.MismatchIgnoringShared(shared, AgentIdentity(agentWith("", "02:00:00:00:00:09")))).NotTo(BeEmpty(), "no address matches")
	g.Expect(calls).To(BeZero())
	g.Expect(host.MismatchIgnoringShared(shared, AgentIdentity(agentWith("", "02:00:00:00:00:02")))).NotTo(BeEmpty())
	g.Expect(calls).To(Equal(1))
}

func TestSharesMAC(t *testing.T) {
	g, host := NewWithT(t), IdentityOf(hostWith("02-00-00-00-00-0a", "", "02:00:00:00:00:0B"))
	g.Expect(host.SharesMAC(AgentIdentity(agentWith("", "02:00:00:00:00:0A")))).To(BeTrue(), "the boot MAC address")
	g.Expect(host.SharesMAC(AgentIdentity(agentWith("", "02:00:00:00:00:0b")))).To(BeTrue(), "an inspected address")
	g.Expect(host.SharesMAC(AgentIdentity(agentWith("", "02:00:00:00:00:0c")))).To(BeFalse())
}

func TestIdentityWithoutAddresses(t *testing.T) {
	NewWithT(t).Expect(IdentityOf(hostWith("", "S1")).MACs).To(BeEmpty())
}

func TestPublicBMC(t *testing.T) {
	for address, want := range map[string]string{
		"redfish-virtualmedia+http://u:p@10.0.0.1:80/redfish/v1/Systems/1?x=1#y": "redfish-virtualmedia+http://10.0.0.1:80/redfish/v1/Systems/1",
		"ipmi://10.0.0.1":         "ipmi://10.0.0.1",
		"u:p@10.0.0.1":            "10.0.0.1",
		"redfish://[fd00::1]/a@b": "redfish://[fd00::1]/a@b",
		"":                        "",
	} {
		NewWithT(t).Expect(publicBMC(address)).To(Equal(want), address)
	}
}
