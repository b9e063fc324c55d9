package hosts

import "context"

// The files of a discovery system about registries.
const (
	registriesFile = "/etc/containers/registries.conf"
	pullSecretFile = "/root/.docker/config.json"
	// The certificates of mirrors (assisted-service, internal/ignition/templates/discovery.ign).
	registryCAFile = "/etc/pki/ca-trust/source/anchors/domain.crt"
)

// Pull is an attempt of a host to pull an image.
type Pull struct {
	// Image is the pulled image, Architecture the architecture of the host.
	Image, Architecture string
	// Registries is the host's registries.conf, Authorities the additional certificates (PEM) that it trusts.
	// Both are empty if none were configured.
	Registries, Authorities string
	// Secret is the host's pull secret.
	Secret string
}

// cannotPull returns why the host cannot pull an image while it runs the discovery system; empty: it can.
func (h *Host) cannotPull(ctx context.Context, system *Ignition, image string) string {
	h.mu.Lock()
	broken, architecture := h.noImages, h.hardware.Architecture
	h.mu.Unlock()
	if broken != "" || h.rack.options.Pull == nil {
		return broken
	}
	err := h.rack.options.Pull(ctx, Pull{
		Image: image, Architecture: architecture, Registries: system.Files[registriesFile].Contents,
		Authorities: system.Files[registryCAFile].Contents, Secret: system.Files[pullSecretFile].Contents,
	})
	if err != nil {
		return err.Error()
	}
	return ""
}
