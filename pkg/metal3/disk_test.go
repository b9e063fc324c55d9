package metal3

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestSelectDisk(t *testing.T) {
	eligible := aiv1beta1.HostInstallationEligibility{Eligible: true}
	disks := []aiv1beta1.HostDisk{
		{
			ID: "usb", Path: "/dev/sda", DriveType: "SSD", SizeBytes: 500 * gibibyte,
			InstallationEligibility: aiv1beta1.HostInstallationEligibility{NotEligibleReasons: []string{"Disk is removable"}},
		},
		{
			ID: "ssd", Path: "/dev/sdb", ByPath: "/dev/disk/by-path/pci-1", Hctl: "0:0:1:0", DriveType: "SSD", Model: "PERC H730", Vendor: "DELL",
			Serial: "S1", Wwn: "0x6141877069FEE3002AB7", SizeBytes: 120 * gibibyte, InstallationEligibility: eligible,
		},
		{
			ID:                      "nvme",
			Name:                    "nvme0n1",
			Path:                    "/dev/nvme0n1",
			DriveType:               "SSD",
			Vendor:                  "Intel",
			SizeBytes:               300 * gibibyte,
			InstallationEligibility: eligible,
		},
		{
			ID:                      "second",
			Path:                    "/dev/sdd",
			DriveType:               "SSD",
			Vendor:                  "Intel",
			Hctl:                    "0:0:3:0",
			SizeBytes:               400 * gibibyte,
			InstallationEligibility: eligible,
		},
		{
			ID:                      "hdd",
			Path:                    "/dev/sdc",
			DriveType:               "HDD",
			Serial:                  "S2",
			Wwn:                     "0x5000",
			SizeBytes:               1000 * gibibyte,
			InstallationEligibility: eligible,
		},
	}
	for name, tc := range map[string]struct {
		hints     *metal3api.RootDeviceHints
		min       int64
		chosen    string
		want, err string
	}{
		"no requirement":                   {},
		"empty hints":                      {hints: &metal3api.RootDeviceHints{}},
		"device name":                      {hints: &metal3api.RootDeviceHints{DeviceName: "/dev/sdc"}, want: "hdd"},
		"by-path name":                     {hints: &metal3api.RootDeviceHints{DeviceName: "/dev/disk/by-path/pci-1"}, want: "ssd"},
		"hctl":                             {hints: &metal3api.RootDeviceHints{HCTL: "0:0:1:0"}, want: "ssd"},
		"part of the model":                {hints: &metal3api.RootDeviceHints{Model: "perc"}, want: "ssd"},
		"vendor":                           {hints: &metal3api.RootDeviceHints{Vendor: "Dell"}, want: "ssd"},
		"serial":                           {hints: &metal3api.RootDeviceHints{SerialNumber: "S2"}, want: "hdd"},
		"wwn":                              {hints: &metal3api.RootDeviceHints{WWN: "0x6141877069fee300"}, want: "ssd"},
		"wwn with extension":               {hints: &metal3api.RootDeviceHints{WWNWithExtension: "0x6141877069fee3002ab7"}, want: "ssd"},
		"vendor extension":                 {hints: &metal3api.RootDeviceHints{WWNVendorExtension: "0x2ab7"}, want: "ssd"},
		"rotational":                       {hints: &metal3api.RootDeviceHints{Rotational: ptr.To(true)}, want: "hdd"},
		"not rotational, others removable": {hints: &metal3api.RootDeviceHints{Rotational: ptr.To(false), Vendor: "DELL"}, want: "ssd"},
		"minimum size of the hints":        {hints: &metal3api.RootDeviceHints{MinSizeGigabytes: 500}, want: "hdd"},
		"several match the hints": {
			hints: &metal3api.RootDeviceHints{Vendor: "intel"},
			err:   "several disks of the host match the root device hints: /dev/nvme0n1 (322.1 GB); /dev/sdd (429.5 GB)",
		},
		"several match the hints, the service chose one": {
			hints: &metal3api.RootDeviceHints{Vendor: "intel"}, chosen: "second", err: "several disks",
		},
		"several match the hints, one is large enough": {
			hints: &metal3api.RootDeviceHints{Vendor: "intel"}, min: 350 * gibibyte, want: "second",
		},
		"several match the hints, one of them is removable":        {hints: &metal3api.RootDeviceHints{MinSizeGigabytes: 450}, want: "hdd"},
		"minimum size alone, the service's choice is large enough": {min: 200 * gibibyte, chosen: "nvme", want: "nvme"},
		"minimum size alone, the service's choice is too small":    {min: 200 * gibibyte, chosen: "ssd", want: "hdd"},
		"minimum size alone, the service chose none":               {min: 100 * gibibyte, want: "hdd"},
		"minimum size alone, none is large enough": {
			min: 2000 * gibibyte, chosen: "hdd", err: "smaller than the required 2000Gi",
		},
		"all hints must fit": {
			hints: &metal3api.RootDeviceHints{Vendor: "DELL", Rotational: ptr.To(true)}, err: "no disk of the host matches all root device hints",
		},
		"fits but not eligible": {
			hints: &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}, err: "/dev/sda (536.9 GB) cannot be installed to: Disk is removable",
		},
		"fits but too small": {
			hints: &metal3api.RootDeviceHints{SerialNumber: "S1"}, min: 200 * gibibyte, err: "smaller than the required 200Gi",
		},
		"serial is exact": {hints: &metal3api.RootDeviceHints{SerialNumber: "S"}, err: "serialNumber is S1, not S"},
	} {
		t.Run(name, func(t *testing.T) {
			disk, err := SelectDisk(tc.hints, tc.min, disks, tc.chosen)
			g := NewWithT(t)
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(ptr.Deref(disk, aiv1beta1.HostDisk{}).ID).To(Equal(tc.want))
		})
	}
}

// minSizeGigabytes counts units of 10^9 bytes in assisted-service and ZTP, and units of 2^30 bytes in Ironic.
// Choosing one meaning silently would overwrite a disk that the user did not mean.
func TestMinSizeIsNotGuessed(t *testing.T) {
	eligible := aiv1beta1.HostInstallationEligibility{Eligible: true}
	between := aiv1beta1.HostDisk{
		ID:                      "ssd",
		Path:                    "/dev/sda",
		DriveType:               "SSD",
		SizeBytes:               120_034_123_776,
		InstallationEligibility: eligible,
	} // the usual size of "120 GB"
	hdd := aiv1beta1.HostDisk{ID: "hdd", Path: "/dev/sdb", DriveType: "HDD", SizeBytes: 4_000_000_000_000, InstallationEligibility: eligible}
	for name, tc := range map[string]struct {
		disks     []aiv1beta1.HostDisk
		hints     metal3api.RootDeviceHints
		min       int64
		want, err string
	}{
		"an SSD between both readings, an HDD above both: refused": {
			disks: []aiv1beta1.HostDisk{between, hdd}, hints: metal3api.RootDeviceHints{MinSizeGigabytes: 120},
			err: "minSizeGigabytes 120 is ambiguous for disk /dev/sda (120.0 GB): 120 GB are 120000000000 bytes, 120 GiB are 128849018880 " +
				"bytes, and the disk has 120034123776. " +
				"Set minSizeGigabytes to at most 111 to include the disk, or to at least 121 to exclude it",
		},
		"the only disk is between both readings: refused": {
			disks: []aiv1beta1.HostDisk{between},
			hints: metal3api.RootDeviceHints{MinSizeGigabytes: 120},
			err:   "minSizeGigabytes 120 is ambiguous for disk /dev/sda",
		},
		"another hint excludes the disk between both readings": {
			disks: []aiv1beta1.HostDisk{between, hdd},
			hints: metal3api.RootDeviceHints{MinSizeGigabytes: 120, Rotational: ptr.To(true)},
			want:  "hdd",
		},
		"hostRequirements exclude the disk between both readings": {
			disks: []aiv1beta1.HostDisk{between, hdd}, hints: metal3api.RootDeviceHints{MinSizeGigabytes: 120}, min: 200 * gibibyte, want: "hdd",
		},
		"at most the lower bound of the message: the disk is included": {
			disks: []aiv1beta1.HostDisk{between}, hints: metal3api.RootDeviceHints{MinSizeGigabytes: 111}, want: "ssd",
		},
		"at least the upper bound of the message: the disk is excluded": {
			disks: []aiv1beta1.HostDisk{between, hdd}, hints: metal3api.RootDeviceHints{MinSizeGigabytes: 121}, want: "hdd",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk, err := SelectDisk(&tc.hints, tc.min, tc.disks, "")
			if tc.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tc.err)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(ptr.Deref(disk, aiv1beta1.HostDisk{}).ID).To(Equal(tc.want))
		})
	}
}

// A disk that matches the hints counts as a match even if assisted-service cannot install to it at this
// moment. The reason may pass, and the API must refuse a host of which several disks match. Disks that
// can never be the root disk do not count: each server that boots the live ISO has an optical drive.
func TestIneligibleDisksCountAsMatches(t *testing.T) {
	match := func(id, driveType string, size int64, reasons ...string) aiv1beta1.HostDisk {
		return aiv1beta1.HostDisk{
			ID: id, Path: "/dev/" + id, DriveType: driveType, Vendor: "DELL", SizeBytes: size,
			InstallationEligibility: aiv1beta1.HostInstallationEligibility{Eligible: len(reasons) == 0, NotEligibleReasons: reasons},
		}
	}
	for name, tc := range map[string]struct {
		other   aiv1beta1.HostDisk
		refused bool
	}{
		"a disk that is too small": {
			match("sdb", "SSD", 60*gigabyte, "Disk is too small (disk only has 60 GB, but 100 GB are required)"), true,
		},
		"a disk in use at this moment": {match("sdb", "SSD", 900*gigabyte, "Disk has a holder"), true},
		"an eligible disk":             {match("sdb", "SSD", 900*gigabyte), true},
		"an optical drive": {
			match("sr0", "ODD", gigabyte, "Disk is removable", "Drive type is ODD, it must be one of HDD, SSD."), false,
		},
		"an optical drive, no reasons":   {match("sr0", "ODD", gigabyte, ""), false},
		"a floppy drive of the BMC":      {match("fd0", "FDD", gigabyte, ""), false},
		"a removable disk of the BMC":    {match("sdb", "HDD", 8*gigabyte, "Disk is removable"), false},
		"an empty slot of a card reader": {match("sdb", "HDD", 0, "Disk is too small (disk only has 0 B, but 100 GB are required)"), false},
		"a path of a multipath disk":     {match("sdb", "FC", 900*gigabyte, "Drive type is FC, it must be one of HDD, SSD, Multipath."), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk, err := SelectDisk(
				&metal3api.RootDeviceHints{Vendor: "DELL"},
				0,
				[]aiv1beta1.HostDisk{match("sda", "SSD", 900*gigabyte), tc.other},
				"sda",
			)
			if tc.refused {
				g.Expect(err).To(MatchError(ContainSubstring("several disks of the host match the root device hints: /dev/sda (900.0 GB); /dev/sdb")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(disk.ID).To(Equal("sda"))
		})
	}
}

// If no disk matches the hints, the message names the nearest disks, by values that a user may put into the
// hints. It also names the hints that exclude each disk.
func TestUnmatchedHintsNameDisksAndHints(t *testing.T) {
	g := NewWithT(t)
	disks := make([]aiv1beta1.HostDisk, 0, 40)
	for i := range 40 {
		disks = append(disks, aiv1beta1.HostDisk{
			Path: fmt.Sprintf(
				"/dev/sd%d",
				i,
			),
			ByPath:    fmt.Sprintf("/dev/disk/by-path/pci-%d", i),
			ByID:      fmt.Sprintf("/dev/disk/by-id/wwn-%d", i),
			Serial:    fmt.Sprintf("S%d", i),
			DriveType: "HDD",
			Model:     "PERC",
			SizeBytes: 300 * gigabyte,
		})
	}
	disks[17].DriveType = "SSD"
	_, err := SelectDisk(&metal3api.RootDeviceHints{Rotational: ptr.To(false), SerialNumber: "X", MinSizeGigabytes: 200}, 0, disks, "")
	g.Expect(err).To(MatchError("no disk of the host matches all root device hints: " +
		"/dev/sd17 (/dev/disk/by-path/pci-17, /dev/disk/by-id/wwn-17, 300.0 GB, serial S17): serialNumber is S17, not X; " +
		"/dev/sd0 (/dev/disk/by-path/pci-0, /dev/disk/by-id/wwn-0, 300.0 GB, serial S0): serialNumber is S0, not X, rotational is true, " +
		"not false; " +
		"/dev/sd1 (/dev/disk/by-path/pci-1, /dev/disk/by-id/wwn-1, 300.0 GB, serial S1): serialNumber is S1, not X, rotational is true, not " +
		"false; and 37 more"))
	_, err = SelectDisk(&metal3api.RootDeviceHints{SerialNumber: "X"}, 0, nil, "")
	g.Expect(err).To(MatchError("assisted-service reports no disk of the host"))
}

// Texts of the inventory come from the host.
func TestMessagesAboutDisksAreBounded(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	disks := make([]aiv1beta1.HostDisk, 0, 40)
	for range 40 {
		disks = append(disks, aiv1beta1.HostDisk{
			Path:                    long,
			ByPath:                  long,
			ByID:                    long,
			Serial:                  long,
			Model:                   long,
			Vendor:                  long,
			Wwn:                     long,
			Hctl:                    long,
			DriveType:               long,
			SizeBytes:               125 * gigabyte,
			InstallationEligibility: aiv1beta1.HostInstallationEligibility{NotEligibleReasons: []string{long, long}},
		})
	}
	for name, hints := range map[string]*metal3api.RootDeviceHints{
		"none matches": {
			DeviceName:         "/dev/a",
			HCTL:               "1:0:0:0",
			Model:              "a",
			Vendor:             "a",
			SerialNumber:       "a",
			MinSizeGigabytes:   9000,
			WWN:                "a",
			WWNWithExtension:   "a",
			WWNVendorExtension: "a",
			Rotational:         ptr.To(true),
		},
		"several match": {Model: "x"},
		"ambiguous":     {MinSizeGigabytes: 120},
		"ineligible":    {MinSizeGigabytes: 1},
	} {
		g := NewWithT(t)
		_, err := SelectDisk(hints, 0, disks, "")
		g.Expect(err).To(HaveOccurred(), name)
		g.Expect(len(err.Error())).To(BeNumerically("<", 900), name)
		_, err = SelectDisk(hints, 0, disks[:1], "")
		g.Expect(err).To(HaveOccurred(), name)
		g.Expect(len(err.Error())).To(BeNumerically("<", 900), name)
	}
}

// SelectDisk uses the order in which assisted-service chooses.
func TestOrderOfDisks(t *testing.T) {
	g := NewWithT(t)
	ordered := []aiv1beta1.HostDisk{
		{ID: "hdd", DriveType: "HDD", SizeBytes: 900},
		{ID: "small ssd", DriveType: "SSD", SizeBytes: 300, Hctl: "9:0:0:0"},
		{ID: "ssd", DriveType: "SSD", SizeBytes: 400, Hctl: "1:0:0:0"},
		{ID: "second ssd", DriveType: "SSD", SizeBytes: 400, Hctl: "2:0:0:0"},
		{ID: "nvme", Name: "nvme0n1", DriveType: "SSD", SizeBytes: 200},
	}
	for i := range ordered {
		ordered[i].InstallationEligibility.Eligible = true
	}
	for i := range ordered {
		rest := slices.Clone(ordered[i:])
		slices.Reverse(rest)
		disk, err := SelectDisk(nil, 1, rest, "")
		g.Expect(err).NotTo(HaveOccurred(), ordered[i].ID)
		g.Expect(disk.ID).To(Equal(ordered[i].ID))
	}
}
