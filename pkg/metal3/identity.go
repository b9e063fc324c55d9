package metal3

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// HostIdentity is what is known of a host independently of the agent that runs on it.
type HostIdentity struct {
	// MACs are the addresses of the host's network interfaces, normalised.
	MACs []string
	// BootMAC is the address that the user stated, normalised; empty when none was.
	BootMAC string
	// Inspected are the addresses that the inspection found, normalised. It ran through BMC, which may be another host's.
	Inspected []string
	// BMC is the address of the management controller, without credentials.
	BMC string
	// Serial is the serial number of the system; empty when unknown.
	Serial string
}

// IdentityOf returns what a BareMetalHost says of its host: the boot MAC address and those that the inspection found.
func IdentityOf(host *Host) HostIdentity {
	identity := HostIdentity{BMC: cmp.Or(publicBMC(host.Spec.BMC.Address), "(none)")}
	if stated := normaliseMACs([]string{host.Spec.BootMACAddress}); len(stated) > 0 {
		identity.BootMAC = stated[0]
	}
	var addresses []string
	if hardware := host.Status.HardwareDetails; hardware != nil {
		for _, nic := range hardware.NIC {
			addresses = append(addresses, nic.MAC)
		}
		identity.Serial = meaningfulSerial(hardware.SystemVendor.SerialNumber)
	}
	identity.Inspected = normaliseMACs(addresses)
	identity.MACs = normaliseMACs(append(addresses, host.Spec.BootMACAddress))
	return identity
}

// AgentIdentity returns what the agent that runs on a host reports of it. It has no MACs until the agent sent its inventory.
func AgentIdentity(agent *aiv1beta1.Agent) HostIdentity {
	addresses := make([]string, 0, len(agent.Status.Inventory.Interfaces))
	for i := range agent.Status.Inventory.Interfaces {
		addresses = append(addresses, agent.Status.Inventory.Interfaces[i].MacAddress)
	}
	return HostIdentity{
		MACs:   normaliseMACs(addresses),
		Serial: meaningfulSerial(agent.Status.Inventory.SystemVendor.SerialNumber),
	}
}

// NetworkMACs returns the MAC addresses, normalised, by which assisted-service finds the hosts of an NMStateConfig.
func NetworkMACs(network *aiv1beta1.NMStateConfig) []string {
	addresses := make([]string, 0, len(network.Spec.Interfaces))
	for _, i := range network.Spec.Interfaces {
		if i != nil {
			addresses = append(addresses, i.MacAddress)
		}
	}
	return normaliseMACs(addresses)
}

// Mismatch says why observed is not the wanted host, in words for people. It is empty when they are the same: they have a MAC address in
// common, and the same serial number where both know it.
//
// The inspection alone proves nothing where the user stated a boot MAC address: through the BMC of another host it
// finds that other host, whose agent then matches. So the stated address must be the agent's own, or one of those
// inspected together with the agent's.
func (wanted HostIdentity) Mismatch(observed HostIdentity) string {
	inspected := shares(observed.MACs, wanted.Inspected)
	switch {
	case wanted.BootMAC == "" && !inspected:
		return fmt.Sprintf("it reports the MAC addresses %s, not one of %s", list(observed.MACs), list(wanted.Inspected))
	case wanted.BootMAC == "", slices.Contains(observed.MACs, wanted.BootMAC), inspected && slices.Contains(wanted.Inspected, wanted.BootMAC):
		return wanted.otherSerial(observed)
	case inspected:
		return fmt.Sprintf("it reports the MAC addresses %s as the inspection did, but spec.bootMACAddress %s is not among them: spec.bmc.address %s probably belongs to another host",
			list(observed.MACs), wanted.BootMAC, wanted.BMC)
	case slices.Contains(wanted.Inspected, wanted.BootMAC):
		return fmt.Sprintf("it reports the MAC addresses %s, not spec.bootMACAddress %s nor another of the inspected %s", list(observed.MACs), wanted.BootMAC, list(wanted.Inspected))
	}
	return fmt.Sprintf("it reports the MAC addresses %s, not spec.bootMACAddress %s; spec.bmc.address %s may belong to another host", list(observed.MACs), wanted.BootMAC, wanted.BMC)
}

// Shared is what a host has that another one has, too, and so proves nothing.
type Shared struct {
	// MACs are such addresses, normalised. Some makers give the NIC between system and management controller the same
	// address in all their servers.
	MACs []string
	// Serial tells that the serial number is one: makers who do not burn one in leave a text of their own.
	Serial bool
}

// SharedBy returns what a host has in common with others.
func SharedBy(host *Host, hosts []*Host) Shared {
	own := IdentityOf(host)
	var shared Shared
	for _, other := range hosts {
		if other.Name == host.Name && other.Namespace == host.Namespace {
			continue
		}
		identity := IdentityOf(other)
		shared.Serial = shared.Serial || own.Serial != "" && strings.EqualFold(own.Serial, identity.Serial)
		for _, mac := range identity.MACs {
			if slices.Contains(own.MACs, mac) {
				shared.MACs = append(shared.MACs, mac)
			}
		}
	}
	slices.Sort(shared.MACs)
	shared.MACs = slices.Compact(shared.MACs)
	return shared
}

// MismatchWithout likewise, where addresses that other hosts have, too, prove nothing: the stated boot MAC address
// does, and a serial number that is the host's alone. sharedBy, which is asked only when something depends on it, tells
// what others have; nil: nothing.
func (wanted HostIdentity) MismatchWithout(sharedBy func() Shared, observed HostIdentity) string {
	mismatch := wanted.Mismatch(observed)
	if mismatch != "" || sharedBy == nil || wanted.BootMAC != "" && slices.Contains(observed.MACs, wanted.BootMAC) {
		return mismatch
	}
	shared := sharedBy()
	sameSerial := wanted.Serial != "" && !shared.Serial && strings.EqualFold(wanted.Serial, observed.Serial)
	if !shares(observed.MACs, shared.MACs) || sameSerial {
		return ""
	}
	own := wanted
	own.Inspected = slices.DeleteFunc(slices.Clone(wanted.Inspected), func(mac string) bool { return mac != wanted.BootMAC && slices.Contains(shared.MACs, mac) })
	if mismatch = own.Mismatch(observed); mismatch != "" {
		mismatch += "; several BareMetalHosts have " + list(shared.MACs)
	}
	return mismatch
}

// Shares reports whether both have a MAC address in common, as those of one host have.
func (wanted HostIdentity) Shares(observed HostIdentity) bool {
	return shares(observed.MACs, wanted.MACs)
}

// SameServer reports whether two Agents run on one server, where nothing is known of the server itself: by the serial
// number and a MAC address, or by all MAC addresses where a serial number is unknown. One address in common proves
// nothing: some makers give one NIC the same address in all their servers.
func (wanted HostIdentity) SameServer(observed HostIdentity) bool {
	if wanted.Serial != "" && observed.Serial != "" {
		return strings.EqualFold(wanted.Serial, observed.Serial) && wanted.Shares(observed)
	}
	return len(wanted.MACs) > 0 && slices.Equal(wanted.MACs, observed.MACs)
}

func (wanted HostIdentity) otherSerial(observed HostIdentity) string {
	if wanted.Serial == "" || observed.Serial == "" || strings.EqualFold(wanted.Serial, observed.Serial) {
		return ""
	}
	return fmt.Sprintf("it reports the MAC addresses %s but the serial number %s, not %s", list(observed.MACs), bound.Value(observed.Serial), bound.Value(wanted.Serial))
}

func shares(some, others []string) bool {
	return slices.ContainsFunc(some, func(mac string) bool { return slices.Contains(others, mac) })
}

// publicBMC returns the address of a BMC without user information and query. It need not be a URL: a bare host name is IPMI's.
func publicBMC(address string) string {
	address, _, _ = strings.Cut(address, "?")
	address, _, _ = strings.Cut(address, "#")
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		scheme, rest = "", address
	}
	authority, path, hasPath := strings.Cut(rest, "/")
	authority = authority[strings.LastIndex(authority, "@")+1:]
	if hasPath {
		authority += "/" + path
	}
	if isURL {
		return scheme + "://" + authority
	}
	return authority
}

// normaliseMACs parses, sorts and deduplicates; what is not a MAC address is dropped.
func normaliseMACs(addresses []string) []string {
	var macs []string
	for _, address := range addresses {
		mac, err := net.ParseMAC(strings.TrimSpace(address))
		if err != nil || strings.Trim(mac.String(), "0:") == "" {
			continue
		}
		macs = append(macs, mac.String())
	}
	slices.Sort(macs)
	return slices.Compact(macs)
}

// placeholderSerials are what vendors put where a serial number was never burnt in (DMI defaults of AMI, Supermicro and
// others, and of QEMU).
var placeholderSerials = []string{
	"", "none", "not specified", "to be filled by o.e.m.", "default string", "system serial number", "0", "unspecified system serial number",
	"0123456789", "123456789", "not available", "n/a", "empty", "chassis serial number",
}

func meaningfulSerial(serial string) string {
	serial = strings.TrimSpace(serial)
	if slices.Contains(placeholderSerials, strings.ToLower(serial)) {
		return ""
	}
	return serial
}

// list names the first items; "(none)" where there are none.
func list(items []string) string { return cmp.Or(bound.List(items), "(none)") }
