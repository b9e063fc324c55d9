package hosts

import metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

// Server puts a machine into the rack that no BareMetalHost stands for, switched off, and returns it; one of the name
// that is there already is returned as it is. Whoever manages it boots and wipes it.
func (r *Rack) Server(hardware Hardware) *Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, ok := r.hosts[hardware.Name]; ok {
		return host
	}
	return r.newHost(hardware.Name, hardware, []string{defaultNetwork})
}

// BootDiskImage writes a disk image to the host, gives it user data and boots it. A host that runs just that goes on.
func (h *Host) BootDiskImage(url string, userData []byte) {
	h.provision(newMedium(metal3api.Image{URL: url}, userData))
}

// Wipe switches the host off and cleans its disk.
func (h *Host) Wipe() { h.deprovision(true) }
