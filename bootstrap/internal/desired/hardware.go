package desired

import (
	"cmp"
	"fmt"
	"strings"

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
		missing = append(missing, fmt.Sprintf("it has %d CPU cores, not %d", inventory.Cpu.Count, wanted.MinCPUCores))
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
	if facts.Told(agent) {
		return agent.Spec.InstallationDiskID, nil
	}
	minBytes := int64(0)
	if wanted := f.Config.Spec.HostRequirements; wanted != nil && wanted.MinDiskSize != nil {
		minBytes = wanted.MinDiskSize.Value()
	}
	return selectDisk(f, agent, minBytes)
}

// rootDeviceHintsMatch tells whether a disk would do if only it were large enough.
func rootDeviceHintsMatch(f *facts.Facts, agent *aiv1beta1.Agent) bool {
	_, err := selectDisk(f, agent, 0)
	return err == nil
}

func selectDisk(f *facts.Facts, agent *aiv1beta1.Agent, minBytes int64) (string, error) {
	disks := agent.Status.Inventory.Disks
	var hints *metal3api.RootDeviceHints
	if f.Host != nil {
		hints = f.Host.Spec.RootDeviceHints
	}
	disk, err := metal3.SelectDisk(hints, minBytes, disks, agent.Status.InstallationDiskID)
	if err != nil {
		return "", &UserError{bootstrapv1.InstallationDiskNotFoundReason, err.Error()}
	}
	if disk == nil {
		return "", nil
	}
	return disk.ID, nil
}
