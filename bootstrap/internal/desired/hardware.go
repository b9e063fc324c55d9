package desired

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
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
		missing = append(missing, fmt.Sprintf("it has %s, not %d", english.Plural(int(inventory.Cpu.Count), "CPU core", ""), wanted.MinCPUCores))
	}
	memory := cmp.Or(inventory.Memory.UsableBytes, inventory.Memory.PhysicalBytes)
	if wanted.MinMemory != nil && memory < wanted.MinMemory.Value() {
		missing = append(missing, fmt.Sprintf("it has %d MiB of usable memory, not %s", memory>>20, wanted.MinMemory))
	}
	if _, err := installationDisk(f, agent); err != nil && wanted.MinDiskSize != nil && rootDeviceHintsMatch(f, agent) {
		missing = append(missing, err.Error())
	}
	if len(missing) == 0 {
		return nil
	}
	return &UserError{bootstrapv1.HostBelowRequirementsReason, fmt.Sprintf("the host is below spec.hostRequirements: %s", strings.Join(missing, "; "))}
}

// installationDisk returns the id of the disk to install to; empty when assisted-service may choose.
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

// rootDeviceHintsMatch reports whether a disk would do if only it were large enough.
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

// rootDeviceHints are those of the BareMetalHost, else those of the config, and where they were given, for people. They are not mixed: hints of two who do not know of each other would
// fit no disk.
func rootDeviceHints(f *facts.Facts) (hints *metal3api.RootDeviceHints, given string, err error) {
	if f.Host != nil && f.Host.Spec.RootDeviceHints != nil && *f.Host.Spec.RootDeviceHints != (metal3api.RootDeviceHints{}) {
		return f.Host.Spec.RootDeviceHints, fmt.Sprintf("; the hints are those of BareMetalHost %s", f.Host.Name), nil
	}
	told := f.Config.Spec.RootDeviceHints
	switch {
	case told == nil:
		return nil, "", nil
	case f.Config.Status.BootMode == bootstrapv1.BootModeDiskImage:
		return nil, "", hintsChooseNothing(bootstrapv1.BootModeDiskImage)
	}
	return &metal3api.RootDeviceHints{
		DeviceName: told.DeviceName, HCTL: told.HCTL, Model: told.Model, Vendor: told.Vendor, SerialNumber: told.SerialNumber,
		MinSizeGigabytes: int(told.MinSizeGigabytes), WWN: told.WWN, WWNWithExtension: told.WWNWithExtension, WWNVendorExtension: told.WWNVendorExtension, Rotational: told.Rotational,
	}, "; the hints are those of spec.rootDeviceHints", nil
}

// hintsChooseNothing says why root device hints of the config are not for a host that boots from its disk: assisted-installer then installs to the root that it runs from, whatever
// disk the Agent names (WriteImageToExistingRoot in its src/ops). Those of a BareMetalHost chose that disk before, when Metal3 wrote it.
func hintsChooseNothing(mode bootstrapv1.BootMode) *UserError {
	return invalid("spec.rootDeviceHints choose nothing in boot mode %s, which writes the disk before the host boots, and OpenShift is installed to that one: remove them, and have the infrastructure "+
		"provider choose the disk (Metal3 does by the root device hints of the BareMetalHost), or set spec.bootMode to %s", mode, bootstrapv1.BootModeLiveISO)
}
