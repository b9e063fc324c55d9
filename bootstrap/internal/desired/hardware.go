package desired

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func belowRequirements(f *facts.Facts, agent *aiv1beta1.Agent) *UserError {
	wanted := f.Config.Spec.HostRequirements
	if wanted == nil {
		return nil
	}
	inventory := &agent.Status.Inventory
	var missing []string
	if inventory.Cpu.Count < int64(wanted.MinCPUCores) {
		missing = append(
			missing,
			fmt.Sprintf("%s (needs %d)", english.Plural(int(inventory.Cpu.Count), "CPU core", ""), wanted.MinCPUCores),
		)
	}
	memory := cmp.Or(inventory.Memory.UsableBytes, inventory.Memory.PhysicalBytes)
	if wanted.MinMemory != nil && memory < wanted.MinMemory.Value() {
		missing = append(missing, fmt.Sprintf("%s usable memory (needs %s)", metal3.Size(memory), wanted.MinMemory))
	}
	if _, err := installationDisk(f, agent); err != nil && wanted.MinDiskSize != nil && rootDeviceHintsMatch(f, agent) {
		missing = append(missing, err.Error())
	}
	missing = append(missing, missingGPUs(wanted.GPUs, inventory.Gpus)...)
	if len(missing) == 0 {
		return nil
	}
	return &UserError{
		bootstrapv1.HostBelowRequirementsReason,
		fmt.Sprintf("the host is below spec.hostRequirements: %s", strings.Join(missing, "; ")),
	}
}

// missingGPUs returns which GPUs are missing. An assisted-service from before January 2026 reports none of any host
// (its agent_types.go).
func missingGPUs(wanted []bootstrapv1.GPURequirement, found []aiv1beta1.HostGPU) []string {
	var missing []string
	for _, w := range wanted {
		kind := strings.TrimSuffix(fmt.Sprintf("PCI vendor %s and device %s", w.VendorID, w.DeviceID), " and device ")
		switch count := assisted.CountGPUs(found, w.VendorID, w.DeviceID); {
		case count >= int(w.MinCount):
		case len(found) == 0:
			missing = append(missing, fmt.Sprintf("assisted-service reports no GPU of the host (needs %d of %s): the host has none, or "+
				"assisted-service is from before January 2026", w.MinCount, kind))
		default:
			missing = append(missing, fmt.Sprintf("%s of %s (needs %d)", english.Plural(count, "GPU", ""), kind, w.MinCount))
		}
	}
	return missing
}

// installationDisk returns the ID of the disk to install to; "" if assisted-service may choose.
func installationDisk(f *facts.Facts, agent *aiv1beta1.Agent) (string, error) {
	if facts.BoundByUs(agent) {
		return agent.Spec.InstallationDiskID, nil
	}
	minBytes := int64(0)
	if wanted := f.Config.Spec.HostRequirements; wanted != nil && wanted.MinDiskSize != nil {
		minBytes = wanted.MinDiskSize.Value()
	}
	return selectDisk(f, agent, minBytes)
}

// rootDeviceHintsMatch reports whether a disk matches without the minimum size.
func rootDeviceHintsMatch(f *facts.Facts, agent *aiv1beta1.Agent) bool {
	_, err := selectDisk(f, agent, 0)
	return err == nil
}

func selectDisk(f *facts.Facts, agent *aiv1beta1.Agent, minBytes int64) (string, error) {
	hints, given, err := rootDeviceHints(f)
	if err != nil {
		return "", err
	}
	disk, err := metal3.SelectDisk(hints, minBytes, agent.Status.Inventory.Disks, agent.Status.InstallationDiskID)
	if err != nil {
		return "", &UserError{bootstrapv1.InstallationDiskNotFoundReason, err.Error() + given}
	}
	if disk == nil {
		return "", nil
	}
	return disk.ID, nil
}

// rootDeviceHints returns the hints of the BareMetalHost, or else those of the config, and their origin for
// messages. They are not mixed: hints of two independent authors would match no disk.
func rootDeviceHints(f *facts.Facts) (hints *metal3api.RootDeviceHints, given string, err error) {
	if f.Host != nil && f.Host.Spec.RootDeviceHints != nil && *f.Host.Spec.RootDeviceHints != (metal3api.RootDeviceHints{}) {
		return f.Host.Spec.RootDeviceHints, fmt.Sprintf("; the hints are those of BareMetalHost %s", f.Host.Name), nil
	}
	configured := f.Config.Spec.RootDeviceHints
	switch {
	case configured == nil:
		return nil, "", nil
	case f.BootMode == bootstrapv1.BootModeDiskImage:
		return nil, "", ineffectiveHints(bootstrapv1.BootModeDiskImage)
	}
	return &metal3api.RootDeviceHints{
		DeviceName:   configured.DeviceName,
		HCTL:         configured.HCTL,
		Model:        configured.Model,
		Vendor:       configured.Vendor,
		SerialNumber: configured.SerialNumber,
		MinSizeGigabytes: int(
			configured.MinSizeGigabytes,
		),
		WWN:                configured.WWN,
		WWNWithExtension:   configured.WWNWithExtension,
		WWNVendorExtension: configured.WWNVendorExtension,
		Rotational:         configured.Rotational,
	}, "; the hints are those of spec.rootDeviceHints", nil
}

// ineffectiveHints returns the error for root device hints of the config on a host that boots from its disk.
// assisted-installer then installs to the root that it runs from, and ignores the disk of the Agent
// (WriteImageToExistingRoot in its src/ops). The hints of a BareMetalHost chose that disk earlier, when
// Metal3 wrote it.
func ineffectiveHints(mode bootstrapv1.BootMode) *UserError {
	return invalid(
		"spec.rootDeviceHints have no effect in boot mode %s, in which OpenShift is installed to the disk that was written before the "+
			"boot: remove them and let the infrastructure provider choose the disk (Metal3 does by the root device hints of the "+
			"BareMetalHost), or set spec.bootMode to %s",
		mode,
		bootstrapv1.BootModeLiveISO,
	)
}
