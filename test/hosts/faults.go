package hosts

import "github.com/openshift/assisted-service/models"

// Fail makes the installation of the host fail once, when it enters the stage: the host reports Failed with the reason.
func (h *Host) Fail(stage models.HostStage, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[stage] = reason
}

// takeFault returns the failure that waits for a stage, and forgets it.
func (h *Host) takeFault(stage models.HostStage) (reason string, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	reason, failed = h.faults[stage]
	delete(h.faults, stage)
	return reason, failed
}

// FailImages makes the host unable to pull container images, with the reason, so that it fails to prepare for an
// installation; empty: it can again.
func (h *Host) FailImages(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noImages = reason
}

func (h *Host) cannotPull() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.noImages
}

// Reboot switches the host off and on. It boots its disk if a node was written to it, else its medium.
func (h *Host) Reboot() {
	h.switching.Lock()
	defer h.switching.Unlock()
	h.stop()
	h.start()
}

// WrongBoot makes the host boot its discovery medium again instead of the node on its disk: at the reboot that ends its
// installation, or at once where it is past that. A Reboot puts it right.
func (h *Host) WrongBoot() {
	h.mu.Lock()
	h.wrongBoot = true
	installed := h.installation != nil && h.installation.written
	h.mu.Unlock()
	if installed {
		h.Reboot()
	}
}

// PowerOff pulls the plug of the host: it stays off, whatever its BareMetalHost says, until PowerOn.
func (h *Host) PowerOff() { h.plug(false) }

// PowerOn puts the plug back in. The host starts if its BareMetalHost wants it on.
func (h *Host) PowerOn() { h.plug(true) }

func (h *Host) plug(in bool) {
	h.switching.Lock()
	defer h.switching.Unlock()
	h.mu.Lock()
	h.unplugged = !in
	h.mu.Unlock()
	if !in {
		h.stop()
	} else if h.key.Name == "" {
		h.start()
	}
	h.rack.poke(h.key)
}
