package assisted

import (
	"fmt"
	"net"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
)

// HostIdentity is what is known of a host independently of the agent that runs on it.
type HostIdentity struct {
	// MACs are the addresses of the host's network interfaces, normalised.
	MACs []string
	// Serial is the serial number of the system; empty when unknown.
	Serial string
}

// IdentityOf returns what a BareMetalHost says of its host: the boot MAC address and those that the inspection found.
func IdentityOf(host *metal3api.BareMetalHost) HostIdentity {
	addresses := []string{host.Spec.BootMACAddress}
	identity := HostIdentity{}
	if hardware := host.Status.HardwareDetails; hardware != nil {
		for _, nic := range hardware.NIC {
			addresses = append(addresses, nic.MAC)
		}
		identity.Serial = meaningfulSerial(hardware.SystemVendor.SerialNumber)
	}
	identity.MACs = normaliseMACs(addresses)
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

// HasInventory tells whether the agent has sent the inventory of its host. assisted-service forgets it when the host is bound, until the
// agent sends it again.
func HasInventory(agent *aiv1beta1.Agent) bool { return len(agent.Status.Inventory.Interfaces) > 0 }

// Mismatch says why observed is not the wanted host, in words for people. It is empty when they are the same: they have a MAC address in
// common, and the same serial number where both know it.
func (wanted HostIdentity) Mismatch(observed HostIdentity) string {
	common := slices.ContainsFunc(observed.MACs, func(mac string) bool { return slices.Contains(wanted.MACs, mac) })
	switch {
	case !common:
		return fmt.Sprintf("it reports the MAC addresses %s, not one of %s", list(observed.MACs), list(wanted.MACs))
	case wanted.Serial != "" && observed.Serial != "" && !strings.EqualFold(wanted.Serial, observed.Serial):
		return fmt.Sprintf("it reports the MAC addresses %s but the serial number %s, not %s", list(observed.MACs), observed.Serial, wanted.Serial)
	}
	return ""
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

// placeholderSerials are what vendors put where a serial number was never burnt in (DMI defaults of AMI and others, and of QEMU).
var placeholderSerials = []string{"", "none", "not specified", "to be filled by o.e.m.", "default string", "system serial number", "0", "unspecified system serial number"}

func meaningfulSerial(serial string) string {
	serial = strings.TrimSpace(serial)
	if slices.Contains(placeholderSerials, strings.ToLower(serial)) {
		return ""
	}
	return serial
}

// list joins at most eight items.
func list(items []string) string {
	const most = 8
	if len(items) == 0 {
		return "(none)"
	}
	if len(items) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(items[:most], ", "), len(items)-most)
	}
	return strings.Join(items, ", ")
}
