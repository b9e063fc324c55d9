package hosts

import metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

// Server adds a machine without a BareMetalHost to the rack, switched off, and returns it; an existing machine
// of that name is returned unchanged. The client that manages it boots and wipes it.
func (r *Rack) Server(hardware Hardware) *Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	if host, ok := r.hosts[hardware.Name]; ok {
		return host
	}
	return r.newHost(hardware.Name, hardware, []string{defaultNetwork})
}

// BootDiskImage writes a disk image to the host, sets its user data and boots it. A host that already runs the
// image continues.
func (h *Host) BootDiskImage(url string, userData []byte) {
	h.provision(newMedium(metal3api.Image{URL: url}, userData))
}

// Wipe switches the host off and cleans its disk.
func (h *Host) Wipe() { h.deprovision(true) }
