package hosts

import (
	"context"
	"sync"

	"github.com/openshift/assisted-service/models"
)

// Fail makes the installation of the host fail once, when it enters the stage: the host reports Failed with the
// reason.
func (h *Host) Fail(stage models.HostStage, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[stage] = reason
}

// takeFault returns and removes the failure of a stage.
func (h *Host) takeFault(stage models.HostStage) (reason string, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	reason, failed = h.faults[stage]
	delete(h.faults, stage)
	return reason, failed
}

// Linger keeps the host in a stage of its installation, as slow hardware does, until release is called.
func (h *Host) Linger(stage models.HostStage) (release func()) {
	held := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lingers[stage] = held
	return sync.OnceFunc(func() { close(held) })
}

// kubeletStart is no reported stage: it precedes all actions of an installed host.
const kubeletStart models.HostStage = "kubelet start"

// Hang makes an installed host hang at each boot from now on until release is called: it is on, and its Node
// does not report.
func (h *Host) Hang() (release func()) { return h.Linger(kubeletStart) }

// linger waits until the host may leave a stage. It returns false if the host was switched off before.
func (h *Host) linger(ctx context.Context, stage models.HostStage) bool {
	h.mu.Lock()
	held, lingers := h.lingers[stage]
	h.mu.Unlock()
	if !lingers {
		return true
	}
	select {
	case <-held:
		return true
	case <-ctx.Done():
		return false
	}
}

// FailImages makes the host fail to pull container images with the reason, so that it cannot prepare for an
// installation. Empty: it can pull them again.
func (h *Host) FailImages(reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noImages = reason
}

// Reboot switches the host off and on. It boots its disk if a node was written to it, otherwise its medium.
func (h *Host) Reboot() {
	h.switching.Lock()
	defer h.switching.Unlock()
	h.stop()
	h.start()
}

// WrongBoot makes the host boot its discovery medium again instead of the node on its disk. This happens at the
// reboot that ends its installation, or at once after an installation. A Reboot fixes that.
func (h *Host) WrongBoot() {
	h.mu.Lock()
	h.wrongBoot = true
	installed := h.installation != nil && h.installation.written
	h.mu.Unlock()
	if installed {
		h.Reboot()
	}
}

// BootMediumFirst makes the host boot its medium at each boot, even with a node on its disk, until it is called
// with false. It simulates a wrong boot order of the firmware.
func (h *Host) BootMediumFirst(first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mediumFirst = first
}

// ExpireCertificates makes the certificates of the kubelet of a host that is off expire, as after a month. At
// its next start the Node, which has not reported for long, is Ready only after the approval of other
// certificates.
func (h *Host) ExpireCertificates() {
	h.switching.Lock()
	defer h.switching.Unlock()
	h.mu.Lock()
	inst := h.installation
	inst.expired = true
	clear(inst.requests)
	h.mu.Unlock()
	h.reportNodeLost(inst)
}

// PowerOff pulls the plug of the host: it stays off until PowerOn, even if its BareMetalHost is online.
func (h *Host) PowerOff() { h.plug(false) }

// PowerOn plugs the host in again. The host starts if its BareMetalHost requests it.
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
