package hosts

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/openshift/assisted-service/models"
)

const (
	gibibyte = int64(1) << 30
	mebibyte = int64(1) << 20
)

// Hardware is the hardware of a machine, as its inspection and the inventory of its discovery agent report it.
type Hardware struct {
	// Name is the name of the machine.
	Name string
	// UUID is the DMI system UUID, which assisted-service uses as host id and Agent name.
	UUID string
	// Serial is the serial number of the system; empty if the vendor left it out.
	Serial string
	// Manufacturer and ProductName are the names of vendor and product.
	Manufacturer, ProductName string
	// Hostname is the hostname of the machine when it is discovered.
	Hostname string
	// Architecture is the architecture of the processor, for example x86_64.
	Architecture string
	// CPUCores is the number of processors that the operating system sees.
	CPUCores int
	// MemoryBytes is the physical memory in bytes.
	MemoryBytes int64
	NICs        []NIC
	Disks       []Disk
	// GPUs are graphics controllers, including that of the BMC. The inspection of the Bare Metal Operator does not find
	// them.
	GPUs []GPU
}

// GPU is a graphics controller by its PCI IDs, such as 10de and 2330.
type GPU struct{ VendorID, DeviceID string }

// NIC is a network interface.
type NIC struct {
	// Name is the interface name, for example eth0.
	Name string
	// MAC is the MAC address, in the case that the machine reports.
	MAC string
	// Kind is "bond", or empty for a physical NIC.
	Kind string
	// Addresses are the addresses of the interface in CIDR form, IPv4 and IPv6. If the first NIC of a machine in
	// a Rack has none, it gets leases: see [WithNetworks].
	Addresses []string
}

// Disk is a storage device.
type Disk struct {
	// Name is the kernel name, for example sda.
	Name string
	// ByID is the stable /dev/disk/by-id path, which assisted-service uses as disk id; ByPath is the bus path.
	ByID, ByPath string
	// Serial, WWN, Vendor and Model identify the device.
	Serial, WWN, Vendor, Model string
	// HCTL is the SCSI address.
	HCTL string
	// SizeBytes is the capacity in bytes.
	SizeBytes int64
	// Rotational is true for spinning media.
	Rotational bool
}

// NewHardware returns a server with two NICs, an SSD of 120 GiB, a spinning disk of 1 TiB, 16 cores and 64 GiB
// of memory. All identifiers follow from the seed: the same seed gives the same server.
func NewHardware(seed string) Hardware {
	digest := sha256.Sum256([]byte(seed))
	id := binary.BigEndian.Uint64(digest[16:24])
	name := seed[strings.LastIndex(seed, "/")+1:]
	return Hardware{
		Name:         name,
		UUID:         uuid.NewSHA1(uuid.NameSpaceOID, []byte(seed)).String(),
		Serial:       fmt.Sprintf("SN%010X", id>>24),
		Manufacturer: "Sim",
		ProductName:  "SimBox",
		Hostname:     name,
		Architecture: "x86_64",
		CPUCores:     16,
		MemoryBytes:  64 * gibibyte,
		NICs: []NIC{
			{Name: "eth0", MAC: macAddress(digest[0:5])},
			{Name: "eth1", MAC: macAddress(digest[5:10])},
		},
		Disks: []Disk{
			newDisk("sda", id, 120*gibibyte, false),
			newDisk("sdb", id+1, 1024*gibibyte, true),
		},
	}
}

// Bonded returns the machine after its operating system has bonded its NICs. The bond has their addresses, and
// all of them report the MAC address of the NIC with the given number.
func (h Hardware) Bonded(name string, nic int) Hardware {
	h = h.clone()
	bond := NIC{Name: name, MAC: h.NICs[nic].MAC, Kind: "bond"}
	for i := range h.NICs {
		bond.Addresses = append(bond.Addresses, h.NICs[i].Addresses...)
		h.NICs[i].MAC, h.NICs[i].Addresses = bond.MAC, nil
	}
	h.NICs = append([]NIC{bond}, h.NICs...)
	return h
}

// macAddress returns a locally administered unicast address with five given bytes.
func macAddress(b []byte) string {
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4])
}

func newDisk(name string, id uint64, size int64, rotational bool) Disk {
	wwn := fmt.Sprintf("0x%016x", id)
	slot := int(name[len(name)-1] - 'a')
	return Disk{
		Name:       name,
		ByID:       "/dev/disk/by-id/wwn-" + wwn,
		ByPath:     fmt.Sprintf("/dev/disk/by-path/pci-0000:00:06.0-scsi-0:0:%d:0", slot),
		Serial:     fmt.Sprintf("s%016x", id),
		WWN:        wwn,
		Vendor:     "Sim",
		Model:      "SIM",
		HCTL:       fmt.Sprintf("0:0:%d:0", slot),
		SizeBytes:  size,
		Rotational: rotational,
	}
}

// Disk finds the disk with an id: its by-id path, its by-path path or its device name. An empty id selects the
// first disk.
func (h Hardware) Disk(id string) (Disk, bool) {
	if id == "" && len(h.Disks) > 0 {
		return h.Disks[0], true
	}
	for _, d := range h.Disks {
		if id == d.ByID || id == d.ByPath || id == "/dev/"+d.Name {
			return d, true
		}
	}
	return Disk{}, false
}

// Details returns the report of an inspection by the Bare Metal Operator, which contains no UUID.
func (h Hardware) Details() *metal3api.HardwareDetails {
	details := &metal3api.HardwareDetails{
		SystemVendor: metal3api.HardwareSystemVendor{Manufacturer: h.Manufacturer, ProductName: h.ProductName, SerialNumber: h.Serial},
		RAMMebibytes: int(h.MemoryBytes / mebibyte),
		CPU:          metal3api.CPU{Arch: h.Architecture, Model: "Sim CPU", ClockMegahertz: 2400, Count: h.CPUCores},
		Hostname:     h.Hostname,
	}
	for i, n := range h.NICs {
		details.NIC = append(details.NIC, metal3api.NIC{
			Name: n.Name, Model: "0x1af4 0x0001", MAC: n.MAC, IP: n.firstAddress(), SpeedGbps: 10, PXE: i == 0,
		})
	}
	for _, d := range h.Disks {
		kind := metal3api.SSD
		if d.Rotational {
			kind = metal3api.HDD
		}
		details.Storage = append(details.Storage, metal3api.Storage{
			Name: d.ByPath, AlternateNames: []string{"/dev/" + d.Name, d.ByID}, Rotational: d.Rotational, Type: kind,
			SizeBytes: metal3api.Capacity(d.SizeBytes), Vendor: d.Vendor, Model: d.Model, SerialNumber: d.Serial, WWN: d.WWN, HCTL: d.HCTL,
		})
	}
	return details
}

// Inventory returns the inventory that the discovery agent sends to assisted-service, in the form of the real
// agent.
func (h Hardware) Inventory() *models.Inventory {
	inventory := &models.Inventory{
		BmcAddress:   "0.0.0.0",
		BmcV6address: "::/0",
		Boot:         &models.Boot{CurrentBootMode: "uefi"},
		CPU: &models.CPU{
			Architecture: h.Architecture, Count: int64(h.CPUCores), Flags: []string{"vmx"},
			Frequency: 2400, ModelName: "Sim CPU",
		},
		Disks:        []*models.Disk{},
		Gpus:         []*models.Gpu{},
		Hostname:     h.Hostname,
		Interfaces:   []*models.Interface{},
		Memory:       &models.Memory{PhysicalBytes: h.MemoryBytes, UsableBytes: h.MemoryBytes},
		Routes:       []*models.Route{},
		SystemVendor: &models.SystemVendor{Manufacturer: h.Manufacturer, ProductName: h.ProductName, SerialNumber: h.Serial},
		TpmVersion:   "2.0",
	}
	for _, n := range h.NICs {
		ipv4, ipv6 := n.byFamily()
		inventory.Interfaces = append(inventory.Interfaces, &models.Interface{
			Flags: []string{"up", "broadcast", "multicast"}, HasCarrier: true, IPV4Addresses: ipv4, IPV6Addresses: ipv6,
			MacAddress: n.MAC, Mtu: 1500, Name: n.Name, Product: "0x0001", SpeedMbps: 10000, Type: cmp.Or(n.Kind, "physical"), Vendor: "0x1af4",
		})
		inventory.Routes = append(inventory.Routes, n.defaultRoutes()...)
	}
	for _, gpu := range h.GPUs {
		inventory.Gpus = append(inventory.Gpus, &models.Gpu{VendorID: gpu.VendorID, DeviceID: gpu.DeviceID})
	}
	for _, d := range h.Disks {
		inventory.Disks = append(inventory.Disks, d.inventory())
	}
	return inventory
}

func (d Disk) inventory() *models.Disk {
	kind := models.DriveTypeSSD
	if d.Rotational {
		kind = models.DriveTypeHDD
	}
	id := d.ByID
	if id == "" {
		id = d.ByPath
	}
	return &models.Disk{
		ID: id, ByID: d.ByID, ByPath: d.ByPath, Name: d.Name, Path: "/dev/" + d.Name, DriveType: kind, Hctl: d.HCTL,
		Model: d.Model, Vendor: d.Vendor, Serial: d.Serial, Wwn: d.WWN, SizeBytes: d.SizeBytes,
		InstallationEligibility: models.DiskInstallationEligibility{Eligible: true},
	}
}

// clone returns a deep copy.
func (h Hardware) clone() Hardware {
	h.NICs = slices.Clone(h.NICs)
	for i := range h.NICs {
		h.NICs[i].Addresses = slices.Clone(h.NICs[i].Addresses)
	}
	h.Disks, h.GPUs = slices.Clone(h.Disks), slices.Clone(h.GPUs)
	return h
}

// hostAddress returns the address of a CIDR string without its prefix length.
func hostAddress(cidr string) string {
	address, _, _ := strings.Cut(cidr, "/")
	return address
}
