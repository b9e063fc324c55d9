package hosts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// HostOption changes a BareMetalHost before NewBareMetalHosts creates it; i counts from 0.
type HostOption func(i int, host *metal3api.BareMetalHost)

// WithName names the BareMetalHosts <prefix>-0, <prefix>-1 and so on; without it the prefix is "host".
func WithName(prefix string) HostOption {
	return func(i int, host *metal3api.BareMetalHost) {
		host.Name = fmt.Sprintf("%s-%d", prefix, i)
		describe(host)
	}
}

// WithLabels labels the BareMetalHosts.
func WithLabels(labels map[string]string) HostOption {
	return func(_ int, host *metal3api.BareMetalHost) { host.Labels = labels }
}

// WithRootDeviceHints selects the disk that matches the hints.
func WithRootDeviceHints(hints metal3api.RootDeviceHints) HostOption {
	return func(_ int, host *metal3api.BareMetalHost) { host.Spec.RootDeviceHints = hints.DeepCopy() }
}

// WithoutMAC creates a BareMetalHost without anything that identifies its machine: no boot MAC address and no
// inspection.
func WithoutMAC() HostOption {
	return func(_ int, host *metal3api.BareMetalHost) {
		host.Spec.BootMACAddress = ""
		host.Spec.InspectionMode = metal3api.InspectionModeDisabled
	}
}

// BMCPassword is in the Secret of every BMC of the laboratory, and in copies of it. Found anywhere else, it is a
// leak.
const BMCPassword = "s3cr3t-0f-a-b4s3b0ard"

// NewBareMetalHosts creates n BareMetalHosts for n different machines, each with the Secret of its BMC. It
// returns them as created; a Rack that watches the API server makes them available.
func NewBareMetalHosts(ctx context.Context, c client.Client, namespace string, n int,
	options ...HostOption,
) ([]*metal3api.BareMetalHost, error) {
	hosts := make([]*metal3api.BareMetalHost, 0, n)
	for i := range n {
		host := &metal3api.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("host-%d", i)}}
		host.Spec.Online = true
		describe(host)
		for _, option := range options {
			option(i, host)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: host.Spec.BMC.CredentialsName},
			Data:       map[string][]byte{"username": []byte("admin"), "password": []byte(BMCPassword)},
		}
		if err := c.Create(ctx, secret); err != nil {
			return nil, fmt.Errorf("cannot create the BMC secret of host %s: %w", host.Name, err)
		}
		if err := c.Create(ctx, host); err != nil {
			return nil, fmt.Errorf("cannot create BareMetalHost %s: %w", host.Name, err)
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// describe sets the fields that follow from the name of a BareMetalHost.
func describe(host *metal3api.BareMetalHost) {
	hardware := NewHardware(path.Join(host.Namespace, host.Name))
	host.Spec.BootMACAddress = hardware.NICs[0].MAC
	host.Spec.BMC = metal3api.BMCDetails{
		Address:         "redfish-virtualmedia://bmc.invalid/redfish/v1/Systems/" + hardware.UUID,
		CredentialsName: host.Name + "-bmc",
	}
}

// WithBootNIC makes the machine boot from the NIC with that number: agents report the others as well, and not
// this one first.
func WithBootNIC(nic int) HostOption {
	return func(_ int, host *metal3api.BareMetalHost) {
		host.Spec.BootMACAddress = NewHardware(path.Join(host.Namespace, host.Name)).NICs[nic].MAC
	}
}

// HardwareOf returns the default machine of a BareMetalHost. It follows from namespace and name, and has the
// boot MAC address and the architecture of the BareMetalHost. The annotation inspect.metal3.io/hardwaredetails
// overrides it.
func HardwareOf(host *metal3api.BareMetalHost) (Hardware, error) {
	hardware := NewHardware(path.Join(host.Namespace, host.Name))
	boots := func(nic NIC) bool { return nic.MAC == host.Spec.BootMACAddress }
	if host.Spec.BootMACAddress != "" && !slices.ContainsFunc(hardware.NICs, boots) {
		hardware.NICs[0].MAC = host.Spec.BootMACAddress
	}
	hardware.Architecture = cmp.Or(host.Spec.Architecture, hardware.Architecture)
	details, err := annotatedDetails(host)
	if err != nil {
		return Hardware{}, err
	}
	if details != nil {
		hardware.overlay(details)
	}
	return hardware, nil
}

// annotatedDetails reads the hardware details that replace an inspection; nil if none exist.
func annotatedDetails(host *metal3api.BareMetalHost) (*metal3api.HardwareDetails, error) {
	text, ok := host.Annotations[metal3api.HardwareDetailsAnnotation]
	if !ok {
		return nil, nil
	}
	details := &metal3api.HardwareDetails{}
	if err := json.Unmarshal([]byte(text), details); err != nil {
		return nil, fmt.Errorf("cannot read annotation %s: %w", metal3api.HardwareDetailsAnnotation, err)
	}
	return details, nil
}

// overlay overrides the hardware with the details, as far as they are set.
func (h *Hardware) overlay(details *metal3api.HardwareDetails) {
	if details.Hostname != "" {
		h.Hostname = details.Hostname
	}
	if details.CPU.Count > 0 {
		h.CPUCores = details.CPU.Count
	}
	if details.RAMMebibytes > 0 {
		h.MemoryBytes = int64(details.RAMMebibytes) * mebibyte
	}
	if details.SystemVendor.SerialNumber != "" {
		h.Serial = details.SystemVendor.SerialNumber
	}
	if len(details.NIC) > 0 {
		h.NICs = nil
	}
	for _, nic := range details.NIC {
		h.NICs = append(h.NICs, NIC{Name: nic.Name, MAC: nic.MAC})
	}
	if len(details.Storage) > 0 {
		h.Disks = nil
	}
	for i, s := range details.Storage {
		disk := newDisk(fmt.Sprintf("sd%c", 'a'+i), uint64(i), int64(s.SizeBytes), s.Rotational)
		disk.ByID, disk.ByPath = "/dev/disk/by-id/wwn-"+s.WWN, s.Name
		disk.Serial, disk.WWN, disk.Vendor, disk.Model, disk.HCTL = s.SerialNumber, s.WWN, s.Vendor, s.Model, s.HCTL
		h.Disks = append(h.Disks, disk)
	}
}
