package metal3

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
)

const gibibyte = int64(1) << 30

// SelectDisk returns the disk to install to: the one that fits all of the root device hints, is at least minBytes large, and on which
// assisted-service can install. Several that fit the hints are an error. Without hints it is chosen, the service's own choice, if that is large
// enough, else the one that the service would choose if only the large enough were there. It returns nil, and no error, when nothing is asked for:
// assisted-service then chooses.
func SelectDisk(hints *metal3api.RootDeviceHints, minBytes int64, disks []aiv1beta1.HostDisk, chosen string) (*aiv1beta1.HostDisk, error) {
	hinted := hints != nil && *hints != (metal3api.RootDeviceHints{})
	if !hinted && minBytes <= 0 {
		return nil, nil //nolint:nilnil // no wish is no error
	}
	var suitable []*aiv1beta1.HostDisk
	var refused []string
	for i := range disks {
		disk := &disks[i]
		switch {
		case hinted && !fits(hints, disk):
		case disk.SizeBytes < minBytes:
			refused = append(refused, fmt.Sprintf("%s is smaller than the %d GiB asked for", diskName(disk), minBytes/gibibyte))
		case !disk.InstallationEligibility.Eligible:
			refused = append(refused, fmt.Sprintf("%s cannot be installed to: %s", diskName(disk), strings.Join(disk.InstallationEligibility.NotEligibleReasons, "; ")))
		default:
			suitable = append(suitable, disk)
		}
	}
	switch {
	case hinted && len(suitable) > 1:
		return nil, fmt.Errorf("several disks of the host (%s) match the root device hints: give hints that only one matches", list(diskNames(suitable)))
	case len(suitable) > 0:
		return preferred(suitable, chosen), nil
	case len(refused) > 0:
		return nil, fmt.Errorf("no disk of the host is suitable: %s", list(refused))
	}
	all := make([]*aiv1beta1.HostDisk, 0, len(disks))
	for i := range disks {
		all = append(all, &disks[i])
	}
	return nil, fmt.Errorf("none of the host's disks (%s) matches the root device hints", list(diskNames(all)))
}

// preferred returns the disk that was chosen, else the one that assisted-service would choose (ListEligibleDisks of its internal/hardware): it keeps
// fast and large disks for the workload.
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
		return cmp.Or(cmp.Compare(nvme(a), nvme(b)), cmp.Compare(a.DriveType, b.DriveType), cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(a.Hctl, b.Hctl))
	})
}

func diskNames(disks []*aiv1beta1.HostDisk) []string {
	names := make([]string, 0, len(disks))
	for _, disk := range disks {
		names = append(names, diskName(disk))
	}
	return names
}

func diskName(disk *aiv1beta1.HostDisk) string {
	for _, name := range []string{disk.Path, disk.Name, disk.ID} {
		if name != "" {
			return name
		}
	}
	return "a disk without name"
}

// fits follows the meaning that the Bare Metal Operator's API gives to each hint: exact, except that model and vendor may be substrings.
// assisted-service's inventory knows one WWN, the one with extension.
func fits(hints *metal3api.RootDeviceHints, disk *aiv1beta1.HostDisk) bool {
	wwn := strings.ToLower(disk.Wwn)
	checks := []struct {
		hint string
		ok   func(hint string) bool
	}{
		{hints.DeviceName, func(h string) bool { return h != "" && slices.Contains([]string{disk.Path, disk.ByPath, disk.ByID}, h) }},
		{hints.HCTL, func(h string) bool { return h == disk.Hctl }},
		{hints.Model, func(h string) bool { return strings.Contains(strings.ToLower(disk.Model), strings.ToLower(h)) }},
		{hints.Vendor, func(h string) bool { return strings.Contains(strings.ToLower(disk.Vendor), strings.ToLower(h)) }},
		{hints.SerialNumber, func(h string) bool { return h == disk.Serial }},
		{hints.WWN, func(h string) bool { return strings.HasPrefix(wwn, strings.ToLower(h)) }},
		{hints.WWNWithExtension, func(h string) bool { return strings.EqualFold(h, disk.Wwn) }},
		{hints.WWNVendorExtension, func(h string) bool { return strings.HasSuffix(wwn, strings.TrimPrefix(strings.ToLower(h), "0x")) }},
	}
	for _, check := range checks {
		if check.hint != "" && !check.ok(check.hint) {
			return false
		}
	}
	if hints.Rotational != nil && *hints.Rotational != (disk.DriveType == "HDD") {
		return false
	}
	return disk.SizeBytes >= int64(hints.MinSizeGigabytes)*gibibyte
}
