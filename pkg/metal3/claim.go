package metal3

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// claimedStates are the provisioning states in which a server runs, or is about to run, its installed system,
// with any consumer.
var claimedStates = []metal3api.ProvisioningState{
	metal3api.StateProvisioning, metal3api.StateProvisioned, metal3api.StateExternallyProvisioned, metal3api.StateDeprovisioning,
}

// Claim returns why a BareMetalHost shows that its server is in use, for messages; "" if it does not. A
// detached BareMetalHost counts in any state. assisted-service and ZTP detach the hosts that they installed,
// and the Bare Metal Operator no longer manages the server.
func Claim(host *Host) string {
	state := metal3api.ProvisioningState(host.Status.Provisioning.State)
	switch {
	case host.Spec.ConsumerRef != nil:
		return "is used by a " + cmp.Or(bound.Value(host.Spec.ConsumerRef.Kind), "consumer")
	case slices.Contains(claimedStates, state):
		return "is " + string(state)
	case host.Spec.ExternallyProvisioned:
		return "is " + string(metal3api.StateExternallyProvisioned)
	case annotation(host, metal3api.DetachedAnnotation) != "":
		return "is detached"
	}
	return ""
}

// Properties that two BareMetalHosts of one server have in common.
const (
	bootMACKey = "boot MAC address"
	bmcKey     = "BMC address"
)

// ServerKeys returns the values that two BareMetalHosts of one server have in common: the boot MAC address
// and the BMC address, normalized. Addresses from the inspection are excluded: some vendors give one NIC the
// same address in all their servers.
func ServerKeys(host *Host) []string {
	var keys []string
	for _, mac := range normalizeMACs([]string{host.Spec.BootMACAddress}) {
		keys = append(keys, bootMACKey+" "+mac)
	}
	if address := bmcSystem(host.Spec.BMC.Address); address != "" {
		keys = append(keys, bmcKey+" "+address)
	}
	return keys
}

// ClaimedBy returns why another BareMetalHost shows that the server of a host is in use, for messages; "" if
// it does not.
func ClaimedBy(host, other *Host) string {
	claim := Claim(other)
	if claim == "" {
		return ""
	}
	others := ServerKeys(other)
	for _, key := range ServerKeys(host) {
		if slices.Contains(others, key) {
			common := bmcKey
			if strings.HasPrefix(key, bootMACKey) {
				common = bootMACKey
			}
			return fmt.Sprintf("BareMetalHost %s/%s, which %s, has the same %s", other.Namespace, other.Name, claim, common)
		}
	}
	return ""
}

// WrongBMC returns that the inspection of a host, through spec.bmc.address, found another server than that of
// spec.bootMACAddress, for messages. It is empty if nothing shows that.
func WrongBMC(host *Host) string {
	identity := IdentityOf(host)
	if identity.BootMAC == "" || len(identity.Inspected) == 0 || slices.Contains(identity.Inspected, identity.BootMAC) {
		return ""
	}
	return fmt.Sprintf(
		"the inspection found the MAC addresses %s and not spec.bootMACAddress %s: spec.bmc.address %s probably belongs to another server",
		list(identity.Inspected),
		identity.BootMAC,
		identity.BMC,
	)
}

// bmcSystem returns the address of a BMC as "host port/path", equal for all drivers that reach the same
// system; "" if there is no address. The path is kept, because the BMC of a chassis has several systems.
// Without a scheme the Bare Metal Operator assumes IPMI (pkg/hardwareutils/bmc).
func bmcSystem(address string) string {
	address = strings.TrimSpace(publicBMC(address))
	if address == "" {
		return ""
	}
	if !strings.Contains(address, "://") {
		address = "ipmi://" + address
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Hostname() == "" {
		return strings.ToLower(address)
	}
	driver, transport, _ := strings.Cut(strings.ToLower(parsed.Scheme), "+")
	port := parsed.Port()
	switch {
	case port != "":
	case driver == "ipmi", driver == "libvirt":
		port = "623"
	case transport == "http":
		port = "80"
	default:
		port = "443"
	}
	host := strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	system := strings.ToLower(strings.TrimSuffix(path.Clean("/"+parsed.Path), "/"))
	return host + " " + port + system
}
