package metal3

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	gigabyte = int64(1_000_000_000)
	gibibyte = int64(1) << 30
)

// SelectDisk returns the disk to install to. This is the only disk that matches all root device hints, if it
// has at least minBytes and assisted-service can install to it.
//
// It is an error if several disks match, even if assisted-service cannot install to some of them at this
// moment. The reason may pass, and then another disk would be overwritten. It is also an error if the meaning
// of minSizeGigabytes decides whether a disk matches, see [ambiguous].
//
// Without hints SelectDisk returns chosen, the choice of assisted-service, if that disk is large enough.
// Otherwise it returns the first large enough disk in the order of assisted-service. Without hints and
// minBytes it returns nil and no error: assisted-service chooses.
func SelectDisk(hints *metal3api.RootDeviceHints, minBytes int64, disks []aiv1beta1.HostDisk, chosen string) (*aiv1beta1.HostDisk, error) {
	hinted := hints != nil && *hints != (metal3api.RootDeviceHints{})
	if !hinted && minBytes <= 0 {
		return nil, nil //nolint:nilnil // no requirement is no error
	}
	if len(disks) == 0 {
		return nil, errors.New("assisted-service reports no disk of the host")
	}
	matching := pointers(disks)
	if hinted {
		matching = slices.DeleteFunc(matching, func(disk *aiv1beta1.HostDisk) bool { return len(mismatches(hints, disk)) > 0 })
	}
	if len(matching) == 0 {
		return nil, noMatch(hints, disks)
	}
	large := slices.DeleteFunc(slices.Clone(matching), func(disk *aiv1beta1.HostDisk) bool { return disk.SizeBytes < minBytes })
	candidates := slices.DeleteFunc(slices.Clone(large), neverRoot)
	suitable := slices.DeleteFunc(
		slices.Clone(candidates),
		func(disk *aiv1beta1.HostDisk) bool { return !disk.InstallationEligibility.Eligible },
	)
	if hinted {
		if i := slices.IndexFunc(candidates, func(disk *aiv1beta1.HostDisk) bool { return ambiguous(hints, disk) }); i >= 0 {
			return nil, ambiguity(hints, candidates[i])
		}
		if len(candidates) > 1 {
			return nil, fmt.Errorf(
				"several disks of the host match the root device hints: %s. Give hints that match one disk only",
				describe(candidates, diskDetails),
			)
		}
	}
	if len(suitable) == 0 {
		return nil, fmt.Errorf(
			"no disk of the host is suitable: %s",
			describe(matching, func(disk *aiv1beta1.HostDisk) string { return diskDetails(disk) + " " + unsuitable(disk, minBytes) }),
		)
	}
	return preferred(suitable, chosen), nil
}

func pointers(disks []aiv1beta1.HostDisk) []*aiv1beta1.HostDisk {
	all := make([]*aiv1beta1.HostDisk, 0, len(disks))
	for i := range disks {
		all = append(all, &disks[i])
	}
	return all
}

// neverRoot reports whether the host can never boot OpenShift from a disk, so that hints which match the disk
// do not mean it. Such disks are optical drives, from which the host runs the live ISO, and floppy drives.
// Others are removable media such as the virtual ones of a BMC, empty slots, and the paths and parts of
// another device. The inventory states the last two only in the reasons of eligibility.
func neverRoot(disk *aiv1beta1.HostDisk) bool {
	permanent := func(reason string) bool {
		return strings.HasPrefix(reason, "Disk is removable") || strings.HasPrefix(reason, "Drive type is ")
	}
	return disk.DriveType == "ODD" || disk.DriveType == "FDD" || disk.SizeBytes == 0 ||
		!disk.InstallationEligibility.Eligible && slices.ContainsFunc(disk.InstallationEligibility.NotEligibleReasons, permanent)
}

func unsuitable(disk *aiv1beta1.HostDisk, minBytes int64) string {
	if disk.SizeBytes < minBytes {
		return "is smaller than the required " + Size(minBytes)
	}
	return "cannot be installed to: " + bound.Shorten(strings.Join(disk.InstallationEligibility.NotEligibleReasons, "; "), 160)
}

// preferred returns the chosen disk, or else the first disk in the order of assisted-service
// (ListEligibleDisks of its internal/hardware). That order keeps fast and large disks for the workload.
func preferred(disks []*aiv1beta1.HostDisk, chosen string) *aiv1beta1.HostDisk {
	for _, disk := range disks {
		if disk.ID == chosen {
			return disk
		}
	}
	nvme := func(disk *aiv1beta1.HostDisk) int {
		if strings.HasPrefix(disk.Name, "nvme") {
			return 1
		}
		return 0
	}
	return slices.MinFunc(disks, func(a, b *aiv1beta1.HostDisk) int {
		return cmp.Or(
			cmp.Compare(nvme(a), nvme(b)),
			cmp.Compare(a.DriveType, b.DriveType),
			cmp.Compare(a.SizeBytes, b.SizeBytes),
			cmp.Compare(a.Hctl, b.Hctl),
		)
	})
}
