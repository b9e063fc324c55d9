package metal3

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// HostIdentity identifies a host by its hardware.
type HostIdentity struct {
	// MACs are the addresses of the host's network interfaces, normalized.
	MACs []string
	// BootMAC is the address that the user set, normalized; empty if there is none.
	BootMAC string
	// Inspected are the addresses that the inspection found, normalized. The inspection used BMC, which may
	// belong to another host.
	Inspected []string
	// BMC is the address of the management controller, without credentials.
	BMC string
	// Serial is the serial number of the system; empty if unknown.
	Serial string
}

// IdentityOf returns the identity of a host by its BareMetalHost: the boot MAC address and the addresses that
// the inspection found.
func IdentityOf(host *Host) HostIdentity {
	identity := HostIdentity{BMC: cmp.Or(publicBMC(host.Spec.BMC.Address), "(none)")}
	if stated := normalizeMACs([]string{host.Spec.BootMACAddress}); len(stated) > 0 {
		identity.BootMAC = stated[0]
	}
	var addresses []string
	if hardware := host.Status.HardwareDetails; hardware != nil {
		for _, nic := range hardware.NIC {
			addresses = append(addresses, nic.MAC)
		}
		identity.Serial = meaningfulSerial(hardware.SystemVendor.SerialNumber)
	}
	identity.Inspected = normalizeMACs(addresses)
	identity.MACs = normalizeMACs(append(addresses, host.Spec.BootMACAddress))
	return identity
}

// AgentIdentity returns the identity of a host by its Agent. It has no MACs until the agent has sent its
// inventory.
func AgentIdentity(agent *aiv1beta1.Agent) HostIdentity {
	addresses := make([]string, 0, len(agent.Status.Inventory.Interfaces))
	for i := range agent.Status.Inventory.Interfaces {
		addresses = append(addresses, agent.Status.Inventory.Interfaces[i].MacAddress)
	}
	return HostIdentity{
		MACs:   normalizeMACs(addresses),
		Serial: meaningfulSerial(agent.Status.Inventory.SystemVendor.SerialNumber),
	}
}

// NetworkMACs returns the normalized MAC addresses by which assisted-service finds the hosts of an
// NMStateConfig.
func NetworkMACs(network *aiv1beta1.NMStateConfig) []string {
	addresses := make([]string, 0, len(network.Spec.Interfaces))
	for _, i := range network.Spec.Interfaces {
		if i != nil {
			addresses = append(addresses, i.MacAddress)
		}
	}
	return normalizeMACs(addresses)
}

// Mismatch returns why observed is not the wanted host, for messages. It is empty if they are the same. They
// then share a MAC address, and have the same serial number if both are known.
//
// If the user set a boot MAC address, the inspection alone proves nothing. With the BMC address of another
// host it inspects that other host, whose agent then matches. The boot MAC address must therefore be an
// address of the agent, or one of the inspected addresses of which the agent has another.
func (wanted HostIdentity) Mismatch(observed HostIdentity) string {
	inspected := shares(observed.MACs, wanted.Inspected)
	switch {
	case wanted.BootMAC == "" && !inspected:
		return fmt.Sprintf("it reports the MAC addresses %s, not one of %s", list(observed.MACs), list(wanted.Inspected))
	case wanted.BootMAC == "", slices.Contains(observed.MACs, wanted.BootMAC), inspected && slices.Contains(wanted.Inspected, wanted.BootMAC):
		return wanted.otherSerial(observed)
	case inspected:
		return fmt.Sprintf(
			"it reports the MAC addresses %s as the inspection did, but spec.bootMACAddress %s is not among them: spec.bmc.address %s probably "+
				"belongs to another host",
			list(observed.MACs),
			wanted.BootMAC,
			wanted.BMC,
		)
	case slices.Contains(wanted.Inspected, wanted.BootMAC):
		return fmt.Sprintf(
			"it reports the MAC addresses %s, not spec.bootMACAddress %s nor another of the inspected %s",
			list(observed.MACs),
			wanted.BootMAC,
			list(wanted.Inspected),
		)
	}
	return fmt.Sprintf(
		"it reports the MAC addresses %s, not spec.bootMACAddress %s; spec.bmc.address %s may belong to another host",
		list(observed.MACs),
		wanted.BootMAC,
		wanted.BMC,
	)
}

// SharedIdentity holds properties of a host that other hosts also have, so that they do not identify the
// host.
type SharedIdentity struct {
	// MACs are the shared addresses, normalized. Some vendors give the NIC between system and management
	// controller the same address in all their servers.
	MACs []string
	// Serial is true if the serial number is shared: some vendors set a fixed text instead.
	Serial bool
}

// SharedBy returns the properties that a host shares with other hosts.
func SharedBy(host *Host, hosts []*Host) SharedIdentity {
	own := IdentityOf(host)
	var shared SharedIdentity
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

// MismatchIgnoringShared is Mismatch, but ignores addresses that other hosts also have. The boot MAC address
// and an unshared serial number still count. It calls sharedBy, which compares all hosts, only if the result
// depends on it. A nil sharedBy means no shared properties.
func (wanted HostIdentity) MismatchIgnoringShared(sharedBy func() SharedIdentity, observed HostIdentity) string {
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
	own.Inspected = slices.DeleteFunc(
		slices.Clone(wanted.Inspected),
		func(mac string) bool { return mac != wanted.BootMAC && slices.Contains(shared.MACs, mac) },
	)
	if mismatch = own.Mismatch(observed); mismatch != "" {
		mismatch += "; several BareMetalHosts have " + list(shared.MACs)
	}
	return mismatch
}

// SharesMAC reports whether both have a MAC address in common.
func (wanted HostIdentity) SharesMAC(observed HostIdentity) bool {
	return shares(observed.MACs, wanted.MACs)
}

// SameServer reports whether two Agents run on one server, without a BareMetalHost. They must have the same
// serial number and a common MAC address. If a serial number is unknown, all MAC addresses must be the same.
// One common address proves nothing: some vendors give one NIC the same address in all their servers.
func (wanted HostIdentity) SameServer(observed HostIdentity) bool {
	if wanted.Serial != "" && observed.Serial != "" {
		return strings.EqualFold(wanted.Serial, observed.Serial) && wanted.SharesMAC(observed)
	}
	return len(wanted.MACs) > 0 && slices.Equal(wanted.MACs, observed.MACs)
}

func (wanted HostIdentity) otherSerial(observed HostIdentity) string {
	if wanted.Serial == "" || observed.Serial == "" || strings.EqualFold(wanted.Serial, observed.Serial) {
		return ""
	}
	return fmt.Sprintf(
		"it reports the MAC addresses %s but the serial number %s, not %s",
		list(observed.MACs),
		bound.Value(observed.Serial),
		bound.Value(wanted.Serial),
	)
}

func shares(some, others []string) bool {
	return slices.ContainsFunc(some, func(mac string) bool { return slices.Contains(others, mac) })
}

// publicBMC returns the address of a BMC without user information and query. The address may lack a scheme: a
// bare hostname is an IPMI address.
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

// normalizeMACs parses, sorts and deduplicates MAC addresses, and drops invalid ones.
func normalizeMACs(addresses []string) []string {
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

// placeholderSerials are texts that vendors set instead of a serial number (DMI defaults of AMI, Supermicro
// and others, and of QEMU).
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

// list names the first items; "(none)" if there are none.
func list(items []string) string { return cmp.Or(bound.List(items), "(none)") }
