package metal3

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// mismatches returns the root device hints that a disk does not match, each with the value of the disk. The
// meaning is that of the Bare Metal Operator's API: exact, except that model and vendor may be substrings.
// The inventory of assisted-service has one WWN, with the extension. A disk that has the minimum size by one
// meaning of minSizeGigabytes matches, see [ambiguous].
func mismatches(hints *metal3api.RootDeviceHints, disk *aiv1beta1.HostDisk) []string {
	wwn := strings.ToLower(disk.Wwn)
	checks := []struct {
		name, hint, value string
		ok                func(hint string) bool
	}{
		{
			"deviceName",
			hints.DeviceName,
			diskName(disk),
			func(h string) bool { return slices.Contains([]string{disk.Path, disk.ByPath, disk.ByID}, h) },
		},
		{"hctl", hints.HCTL, disk.Hctl, func(h string) bool { return h == disk.Hctl }},
		{"model", hints.Model, disk.Model, func(h string) bool { return strings.Contains(strings.ToLower(disk.Model), strings.ToLower(h)) }},
		{"vendor", hints.Vendor, disk.Vendor, func(h string) bool { return strings.Contains(strings.ToLower(disk.Vendor), strings.ToLower(h)) }},
		{"serialNumber", hints.SerialNumber, disk.Serial, func(h string) bool { return h == disk.Serial }},
		{"wwn", hints.WWN, disk.Wwn, func(h string) bool { return strings.HasPrefix(wwn, strings.ToLower(h)) }},
		{"wwnWithExtension", hints.WWNWithExtension, disk.Wwn, func(h string) bool { return strings.EqualFold(h, disk.Wwn) }},
		{
			"wwnVendorExtension",
			hints.WWNVendorExtension,
			disk.Wwn,
			func(h string) bool { return strings.HasSuffix(wwn, strings.TrimPrefix(strings.ToLower(h), "0x")) },
		},
	}
	var failed []string
	for _, check := range checks {
		if check.hint != "" && !check.ok(check.hint) {
			failed = append(
				failed,
				fmt.Sprintf("%s is %s, not %s", check.name, cmp.Or(bound.Shorten(check.value, 64), "empty"), bound.Shorten(check.hint, 64)),
			)
		}
	}
	if spins := disk.DriveType == "HDD"; hints.Rotational != nil && *hints.Rotational != spins {
		failed = append(failed, fmt.Sprintf("rotational is %t, not %t", spins, *hints.Rotational))
	}
	if disk.SizeBytes < int64(hints.MinSizeGigabytes)*gigabyte {
		failed = append(failed, fmt.Sprintf("it is smaller than minSizeGigabytes %d", hints.MinSizeGigabytes))
	}
	return failed
}

// ambiguous reports whether a disk has the minimum size of the hints in units of 10^9 bytes but not in units
// of 2^30 bytes. assisted-service (GetAcceptableDisksWithHints of its internal/host/hostutil) counts units of
// 10^9 bytes, and so do ZTP and the agent-based installer. Ironic counts units of 2^30 bytes. The API of the
// Bare Metal Operator only states "Gigabytes".
func ambiguous(hints *metal3api.RootDeviceHints, disk *aiv1beta1.HostDisk) bool {
	return disk.SizeBytes >= int64(hints.MinSizeGigabytes)*gigabyte && disk.SizeBytes < int64(hints.MinSizeGigabytes)*gibibyte
}

func ambiguity(hints *metal3api.RootDeviceHints, disk *aiv1beta1.HostDisk) error {
	size := int64(hints.MinSizeGigabytes)
	return fmt.Errorf(
		"minSizeGigabytes %d is ambiguous for disk %s: %d GB are %d bytes, %d GiB are %d bytes, and the disk has %d. Set minSizeGigabytes "+
			"to at most %d to include the disk, or to at least %d to exclude it",
		size,
		diskDetails(disk),
		size,
		size*gigabyte,
		size,
		size*gibibyte,
		disk.SizeBytes,
		disk.SizeBytes/gibibyte,
		disk.SizeBytes/gigabyte+1,
	)
}

// noMatch returns the error for hints that no disk matches. It names the disks that fail the fewest hints
// first.
func noMatch(hints *metal3api.RootDeviceHints, disks []aiv1beta1.HostDisk) error {
	failed := make(map[*aiv1beta1.HostDisk][]string, len(disks))
	nearest := pointers(disks)
	for _, disk := range nearest {
		failed[disk] = mismatches(hints, disk)
	}
	slices.SortStableFunc(nearest, func(a, b *aiv1beta1.HostDisk) int { return cmp.Compare(len(failed[a]), len(failed[b])) })
	return fmt.Errorf("no disk of the host matches all root device hints: %s", describe(nearest, func(disk *aiv1beta1.HostDisk) string {
		return diskDetails(disk) + ": " + strings.Join(failed[disk], ", ")
	}))
}

// describe lists at most three disks and the number of the others.
func describe(disks []*aiv1beta1.HostDisk, details func(*aiv1beta1.HostDisk) string) string {
	const most = 3
	var described []string
	for _, disk := range disks[:min(len(disks), most)] {
		described = append(described, bound.Shorten(details(disk), 250))
	}
	if len(disks) > most {
		described = append(described, fmt.Sprintf("and %d more", len(disks)-most))
	}
	return strings.Join(described, "; ")
}

// diskDetails describes a disk by values that a user can write into root device hints.
func diskDetails(disk *aiv1beta1.HostDisk) string {
	var details []string
	for _, path := range []string{disk.ByPath, disk.ByID} {
		if path != "" && path != diskName(disk) {
			details = append(details, bound.Shorten(path, 96))
		}
	}
	details = append(details, fmt.Sprintf("%.1f GB", float64(disk.SizeBytes)/float64(gigabyte)))
	if disk.Serial != "" {
		details = append(details, "serial "+bound.Shorten(disk.Serial, 32))
	}
	return fmt.Sprintf("%s (%s)", bound.Shorten(diskName(disk), 96), strings.Join(details, ", "))
}

func diskName(disk *aiv1beta1.HostDisk) string {
	return cmp.Or(disk.Path, disk.Name, disk.ID, "a disk without name")
}
