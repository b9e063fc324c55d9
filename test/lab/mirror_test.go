package lab

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/pki"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

func TestDisconnectedHostsPullFromMirrorsOnly(t *testing.T) {
	g := NewWithT(t)
	registry, err := startRegistry(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	mirror, err := startMirror(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	l := &Lab{Registry: registry, Mirror: mirror}
	image, err := mirror.take("4.19.10", registry)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(image).To(HavePrefix(releaseRepository + "@sha256:"))
	g.Expect(registry.Version(image)).To(Equal("4.19.10"))
	stranger, err := pki.New("stranger")
	g.Expect(err).NotTo(HaveOccurred())

	named := func(location, mirror string) string {
		return fmt.Sprintf("[[registry]]\nlocation = %q\n[[registry.mirror]]\nlocation = %q\n", location, mirror)
	}
	right := hosts.Pull{
		Image: image, Architecture: "x86_64", Registries: named(releaseRepository, mirror.address+mirroredRepository),
		Authorities: string(mirror.authority.PEM()), Secret: l.secretOfMirror(),
	}
	for situation, c := range map[string]struct {
		change func(p *hosts.Pull)
		fails  string
	}{
		"from the mirror": {func(*hosts.Pull) {}, ""},
		"from the mirror by prefix": {
			func(p *hosts.Pull) { p.Registries = named("elsewhere", "x") + "prefix = \"quay.io\"\n" + p.Registries },
			"",
		},
		"from the second of mirrors": {func(p *hosts.Pull) { p.Registries += named(releaseRepository, "mirror.example.com") }, ""},
		"without mirrors":            {func(p *hosts.Pull) { p.Registries, p.Secret = "", "" }, ""},
		"another repository there":   {func(p *hosts.Pull) { p.Registries = named(releaseRepository, mirror.address+"/other") }, "404"},
		"a mirror that does not exist": {
			func(p *hosts.Pull) { p.Registries = named(releaseRepository, "mirror.example.com/mirrored") },
			"no registry mirror.example.com",
		},
		"a mirror of another repository": {
			func(p *hosts.Pull) { p.Registries = named("quay.io/openshift-release-dev/ocp", mirror.address) },
			"no mirror has",
		},
		"under another authority":  {func(p *hosts.Pull) { p.Authorities = string(stranger.PEM()) }, "certificate"},
		"without its certificates": {func(p *hosts.Pull) { p.Authorities = "" }, "certificate"},
		"without credentials":      {func(p *hosts.Pull) { p.Secret = `{"auths":{"quay.io":{"auth":"YTpi"}}}` }, "401"},
		"for another architecture": {func(p *hosts.Pull) { p.Architecture = "aarch64" }, "not for aarch64"},
	} {
		t.Run(situation, func(t *testing.T) {
			p := right
			c.change(&p)
			if err := l.pull(t.Context(), p); c.fails == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.fails)))
			}
		})
	}
	g.Expect(mirror.Lookups()).NotTo(BeEmpty())
	g.Expect(registry.Lookups()).To(BeEmpty())
}
