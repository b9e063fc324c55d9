package choice

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// CriticalHealthMessage is why a host does not fit whose server cannot be trusted with an installation.
const CriticalHealthMessage = "its BMC reports a critical error (condition Healthy)"

// Unsuitable returns why a host that CAPM3 may choose would not be bound, or why its installation would probably fail. It
// is empty if the BareMetalHost shows no reason.
func Unsuitable(host *metal3.Host, wanted *bootstrapv1.HostRequirements) string {
	if reason := metal3.WrongBMC(host); reason != "" {
		return reason
	}
	if reason := belowRequirements(host, wanted); reason != "" {
		return reason
	}
	if metal3.CriticalHealth(host) {
		return CriticalHealthMessage
	}
	return ""
}

// belowRequirements compares the inspected hardware with hostRequirements. Hardware that the inspection did
// not find is checked after the discovery.
func belowRequirements(host *metal3.Host, wanted *bootstrapv1.HostRequirements) string {
	found := host.Status.HardwareDetails
	if wanted == nil || found == nil {
		return ""
	}
	var missing []string
	if cores := found.CPU.Count; cores > 0 && cores < int(wanted.MinCPUCores) {
		missing = append(missing, fmt.Sprintf("%s (needs %d)", english.Plural(cores, "CPU core", ""), wanted.MinCPUCores))
	}
	if mebibytes := int64(found.RAMMebibytes); mebibytes > 0 && wanted.MinMemory != nil && mebibytes<<20 < wanted.MinMemory.Value() {
		missing = append(missing, fmt.Sprintf("%s memory (needs %s)", metal3.Size(mebibytes<<20), wanted.MinMemory))
	}
	if largest := metal3.LargestDisk(found.Storage); largest > 0 && wanted.MinDiskSize != nil && largest < wanted.MinDiskSize.Value() {
		missing = append(missing, fmt.Sprintf("no disk above %s (needs %s)", metal3.Size(largest), wanted.MinDiskSize))
	}
	if len(missing) == 0 {
		return ""
	}
	return "below spec.hostRequirements: " + strings.Join(missing, ", ")
}
