package metal3

import (
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
)

// The drivers and the notations of an address of one system differ.
func TestBMCAddressesOfOneSystem(t *testing.T) {
	for want, addresses := range map[string][]string{
		"10.0.0.7 443/redfish/v1/systems/1": {
			"redfish://10.0.0.7/redfish/v1/Systems/1",
			"redfish+https://10.0.0.7:443/redfish/v1/Systems/1/",
			"idrac-virtualmedia://admin:secret@10.0.0.7/redfish/v1/Systems/1?token=secret",
			"redfish-virtualmedia+https://10.0.0.7/redfish//v1/Systems/1#x",
			" ilo5-virtualmedia://10.0.0.7/redfish/v1/systems/1",
			"redfish://[::ffff:10.0.0.7]/redfish/v1/Systems/1",
		},
		"10.0.0.7 443/redfish/v1/systems/2":    {"redfish://10.0.0.7/redfish/v1/Systems/2"},
		"10.0.0.7 8000/redfish/v1/systems/1":   {"redfish+http://10.0.0.7:8000/redfish/v1/Systems/1"},
		"10.0.0.7 80/redfish/v1/systems/1":     {"redfish+http://10.0.0.7/redfish/v1/Systems/1"},
		"bmc.example 443/redfish/v1/systems/1": {"redfish://BMC.example./redfish/v1/Systems/1"},
		"fd00::7 443/redfish/v1/systems/1":     {"redfish://[FD00:0::7]/redfish/v1/Systems/1"},
		"10.0.0.7 623":                         {"10.0.0.7", "ipmi://10.0.0.7", "ipmi://10.0.0.7:623", "ipmi://admin@10.0.0.7/"},
		"10.0.0.7 443":                         {"idrac://10.0.0.7"},
		"192.168.122.1 6233":                   {"ipmi://192.168.122.1:6233"},
		"redfish://%zz":                        {"redfish://%ZZ"},
		"":                                     {"", " "},
	} {
		for _, address := range addresses {
			NewWithT(t).Expect(bmcSystem(address)).To(Equal(want), address)
		}
	}
}

func TestServerKeys(t *testing.T) {
	g := NewWithT(t)
	host := hostWith("02-00-00-00-00-0A", "S1", "02:00:00:00:00:0b")
	g.Expect(ServerKeys(host)).
		To(Equal([]string{
			"boot MAC address 02:00:00:00:00:0a", "BMC address bmc.example 443/redfish/v1/systems/1",
		}), "addresses from the inspection are excluded")
	g.Expect(ServerKeys(&Host{})).To(BeEmpty())
	host.Spec.BootMACAddress = "00:00:00:00:00:00"
	g.Expect(ServerKeys(host)).To(HaveLen(1), "zeros are no address")
}

func TestClaim(t *testing.T) {
	for situation, tc := range map[string]struct {
		change func(*Host)
		claim  string
	}{
		"free":                   {func(*Host) {}, ""},
		"not registered yet":     {func(host *Host) { host.Status.Provisioning.State = "" }, ""},
		"inspected":              {func(host *Host) { host.Status.Provisioning.State = "inspecting" }, ""},
		"paused":                 {func(host *Host) { host.Annotations = map[string]string{metal3api.PausedAnnotation: ""} }, ""},
		"being deleted, free":    {func(host *Host) { host.Status.Provisioning.State = "deleting" }, ""},
		"provisioned":            {func(host *Host) { host.Status.Provisioning.State = "provisioned" }, "is provisioned"},
		"provisioning":           {func(host *Host) { host.Status.Provisioning.State = "provisioning" }, "is provisioning"},
		"deprovisioning":         {func(host *Host) { host.Status.Provisioning.State = "deprovisioning" }, "is deprovisioning"},
		"externally provisioned": {func(host *Host) { host.Spec.ExternallyProvisioned = true }, "is externally provisioned"},
		"detached":               {func(host *Host) { host.Annotations = map[string]string{metal3api.DetachedAnnotation: ""} }, "is detached"},
		"of a Metal3Machine": {
			func(host *Host) { host.Spec.ConsumerRef = &Consumer{Kind: MachineKind, Name: "m"} }, "is used by a Metal3Machine",
		},
		"of an unknown kind": {func(host *Host) { host.Spec.ConsumerRef = &Consumer{} }, "is used by a consumer"},
	} {
		host := hostWith("02:00:00:00:00:0a", "")
		host.Namespace, host.Name, host.Status.Provisioning.State = "lab", "host", "available"
		tc.change(host)
		g := NewWithT(t)
		g.Expect(Claim(host)).To(Equal(tc.claim), situation)
		if tc.claim == "" {
			g.Expect(ClaimedBy(host, host)).To(BeEmpty(), situation)
			continue
		}
		g.Expect(ClaimedBy(hostWith("02:00:00:00:00:0b", ""), host)).
			To(Equal("BareMetalHost lab/host, which "+tc.claim+", has the same BMC address"), situation)
		other := hostWith("02:00:00:00:00:0A", "")
		other.Spec.BMC.Address = "ipmi://other"
		g.Expect(ClaimedBy(other, host)).To(HaveSuffix("has the same boot MAC address"), situation)
		other.Spec.BootMACAddress = ""
		g.Expect(ClaimedBy(other, host)).To(BeEmpty(), situation)
	}
}

func TestWrongBMC(t *testing.T) {
	g := NewWithT(t)
	g.Expect(WrongBMC(hostWith("02:00:00:00:00:0a", "", "02:00:00:00:00:0b"))).To(Equal(
		"the inspection found the MAC addresses 02:00:00:00:00:0b and not spec.bootMACAddress 02:00:00:00:00:0a: spec.bmc.address " +
			"redfish+https://bmc.example/redfish/v1/Systems/1 probably belongs to another server",
	))
	for situation, host := range map[string]*Host{
		"found":                  hostWith("02-00-00-00-00-0A", "", "02:00:00:00:00:0b", "02:00:00:00:00:0a"),
		"not inspected":          hostWith("02:00:00:00:00:0a", ""),
		"inspected without NICs": hostWith("02:00:00:00:00:0a", "S1"),
		"not stated":             hostWith("", "", "02:00:00:00:00:0b"),
	} {
		g.Expect(WrongBMC(host)).To(BeEmpty(), situation)
	}
}

func TestSameServer(t *testing.T) {
	const a, b = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
	for situation, tc := range map[string]struct {
		first, second HostIdentity
		same          bool
	}{
		"all addresses":          {HostIdentity{MACs: []string{a, b}}, HostIdentity{MACs: []string{a, b}}, true},
		"one address of several": {HostIdentity{MACs: []string{a, b}}, HostIdentity{MACs: []string{b}}, false},
		"no addresses":           {HostIdentity{}, HostIdentity{}, false},
		"one address and the serial number": {
			HostIdentity{MACs: []string{a, b}, Serial: "S1"}, HostIdentity{MACs: []string{b}, Serial: "s1"}, true,
		},
		"all addresses and another serial": {
			HostIdentity{MACs: []string{a}, Serial: "S1"}, HostIdentity{MACs: []string{a}, Serial: "S2"}, false,
		},
		"the serial number and no address": {
			HostIdentity{MACs: []string{a}, Serial: "S1"}, HostIdentity{MACs: []string{b}, Serial: "S1"}, false,
		},
		"all addresses, one serial unknown": {HostIdentity{MACs: []string{a}, Serial: "S1"}, HostIdentity{MACs: []string{a}}, true},
	} {
		NewWithT(t).Expect(tc.first.SameServer(tc.second)).To(Equal(tc.same), situation)
	}
}
