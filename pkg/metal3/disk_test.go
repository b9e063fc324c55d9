package metal3

import (
	"slices"
	"testing"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"k8s.io/utils/ptr"
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
		{ID: "nvme", Name: "nvme0n1", Path: "/dev/nvme0n1", DriveType: "SSD", Vendor: "Intel", SizeBytes: 300 * gibibyte, InstallationEligibility: eligible},
		{ID: "second", Path: "/dev/sdd", DriveType: "SSD", Vendor: "Intel", Hctl: "0:0:3:0", SizeBytes: 400 * gibibyte, InstallationEligibility: eligible},
		{ID: "hdd", Path: "/dev/sdc", DriveType: "HDD", Serial: "S2", Wwn: "0x5000", SizeBytes: 1000 * gibibyte, InstallationEligibility: eligible},
	}
	for name, tc := range map[string]struct {
		hints     *metal3api.RootDeviceHints
		min       int64
		chosen    string
		want, err string
	}{
		"nothing asked":                    {},
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
		"several match the hints":          {hints: &metal3api.RootDeviceHints{Vendor: "intel"}, err: "several disks of the host (/dev/nvme0n1, /dev/sdd) match the root device hints"},
		"several match the hints, the service chose one":           {hints: &metal3api.RootDeviceHints{Vendor: "intel"}, chosen: "second", err: "several disks"},
		"several match the hints, one is large enough":             {hints: &metal3api.RootDeviceHints{Vendor: "intel"}, min: 350 * gibibyte, want: "second"},
		"several match the hints, one is eligible":                 {hints: &metal3api.RootDeviceHints{MinSizeGigabytes: 450}, want: "hdd"},
		"minimum size alone, the service's choice is large enough": {min: 200 * gibibyte, chosen: "nvme", want: "nvme"},
		"minimum size alone, the service's choice is too small":    {min: 200 * gibibyte, chosen: "ssd", want: "hdd"},
		"minimum size alone, the service chose none":               {min: 100 * gibibyte, want: "hdd"},
		"minimum size alone, none is large enough":                 {min: 2000 * gibibyte, chosen: "hdd", err: "smaller than the 2000 GiB"},
		"all hints must fit":                                       {hints: &metal3api.RootDeviceHints{Vendor: "DELL", Rotational: ptr.To(true)}, err: "matches the root device hints"},
		"fits but not eligible":                                    {hints: &metal3api.RootDeviceHints{DeviceName: "/dev/sda"}, err: "/dev/sda cannot be installed to: Disk is removable"},
		"fits but too small":                                       {hints: &metal3api.RootDeviceHints{SerialNumber: "S1"}, min: 200 * gibibyte, err: "smaller than the 200 GiB"},
		"serial is exact":                                          {hints: &metal3api.RootDeviceHints{SerialNumber: "S"}, err: "none of the host's disks"},
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

// TestOrderOfDisks is the order in which assisted-service chooses.
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
