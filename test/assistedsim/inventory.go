package assistedsim

import (
	"time"

	"github.com/openshift/assisted-service/models"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// seconds returns a time with the resolution of the API.
func seconds(t time.Time) *metav1.Time {
	at := metav1.NewTime(t).Rfc3339Copy()
	return &at
}

// agentInventory converts the inventory of a host to the form in the Agent's status.
func agentInventory(in *models.Inventory) HostInventory {
	out := HostInventory{Hostname: in.Hostname, BmcAddress: in.BmcAddress, BmcV6address: in.BmcV6address}
	if in.Memory != nil {
		out.Memory = aiv1beta1.HostMemory{PhysicalBytes: in.Memory.PhysicalBytes, UsableBytes: in.Memory.UsableBytes}
	}
	if in.CPU != nil {
		out.Cpu = HostCPU{
			Count: in.CPU.Count, ClockMegahertz: int64(in.CPU.Frequency), Flags: in.CPU.Flags,
			ModelName: in.CPU.ModelName, Architecture: in.CPU.Architecture,
		}
	}
	if in.Boot != nil {
		out.Boot = HostBoot{
			CurrentBootMode: in.Boot.CurrentBootMode, PxeInterface: in.Boot.PxeInterface, DeviceType: in.Boot.DeviceType,
		}
	}
	if in.SystemVendor != nil {
		out.SystemVendor = HostSystemVendor{
			SerialNumber: in.SystemVendor.SerialNumber, ProductName: in.SystemVendor.ProductName,
			Manufacturer: in.SystemVendor.Manufacturer, Virtual: in.SystemVendor.Virtual,
		}
	}
	for _, nic := range in.Interfaces {
		out.Interfaces = append(out.Interfaces, agentInterface(nic))
	}
	for _, disk := range in.Disks {
		out.Disks = append(out.Disks, agentDisk(disk))
	}
	for _, gpu := range in.Gpus {
		out.Gpus = append(out.Gpus, aiv1beta1.HostGPU{VendorID: gpu.VendorID, DeviceID: gpu.DeviceID})
	}
	return out
}

func agentInterface(in *models.Interface) HostInterface {
	return HostInterface{
		Name: in.Name, MacAddress: in.MacAddress, Vendor: in.Vendor, Product: in.Product, Mtu: in.Mtu,
		HasCarrier: in.HasCarrier, Biosdevname: in.Biosdevname, ClientID: in.ClientID, SpeedMbps: in.SpeedMbps,
		Flags: nonNil(in.Flags), IPV4Addresses: nonNil(in.IPV4Addresses), IPV6Addresses: nonNil(in.IPV6Addresses),
	}
}

func agentDisk(in *models.Disk) HostDisk {
	out := HostDisk{
		ID: in.ID, DriveType: string(in.DriveType), Vendor: in.Vendor, Name: in.Name, Path: in.Path, Hctl: in.Hctl,
		ByPath: in.ByPath, ByID: in.ByID, Model: in.Model, Wwn: in.Wwn, Serial: in.Serial, SizeBytes: in.SizeBytes,
		Bootable: in.Bootable, Smart: in.Smart,
		InstallationEligibility: HostInstallationEligibility{
			Eligible:           in.InstallationEligibility.Eligible,
			NotEligibleReasons: nonNil(in.InstallationEligibility.NotEligibleReasons),
		},
	}
	if in.IoPerf != nil {
		out.IoPerf.SyncDurationMilliseconds = in.IoPerf.SyncDuration
	}
	return out
}

// nonNil returns an empty list for nil, for lists that the schema requires.
func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
