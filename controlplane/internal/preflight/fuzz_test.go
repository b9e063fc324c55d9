package preflight

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// FuzzRegistries checks that a ConfigMap has mirrors or a problem, and that an image has a mirror only by an
// entry with a mirror.
func FuzzRegistries(f *testing.F) {
	for _, text := range []string{
		"[[registry]]\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"mirror:5000/ocp\"\n",
		"[[registry]]\nprefix = \"*.quay.io\"\nlocation = \"quay.io\"\n[[registry.mirror]]\nlocation = \"m\"",
		"unqualified-search-registries = []", "[[registry]]", "registry = 1", "[registry]\nlocation = \"a\"",
		"[[registry]]\n[[registry.mirror]]\nlocation = \"a\"", "\x00",
	} {
		f.Add(text, "quay.io/openshift-release-dev/ocp-release@sha256:aa")
	}
	f.Fuzz(func(t *testing.T, text, image string) {
		g := NewWithT(t)
		found := ParseRegistries("mirrors", map[string]string{assisted.RegistriesKey: text})
		if len(found.mirrors()) > 0 {
			g.Expect(found.Problem).To(BeEmpty())
		} else {
			g.Expect(found.Problem).NotTo(BeEmpty())
		}
		if found.mirrored(image) {
			g.Expect(text).To(ContainSubstring("mirror"))
			g.Expect(image).NotTo(BeEmpty())
		}
		for _, mirror := range found.mirrors() {
			g.Expect(mirror).NotTo(BeEmpty())
		}
	})
}

// FuzzWithin checks that an image is below a prefix only if the prefix ends with a part of the image name.
func FuzzWithin(f *testing.F) {
	f.Add("quay.io/team/x@sha256:aa", "quay.io/team")
	f.Add("quay.io/teammate/x", "quay.io/team")
	f.Add("a.quay.io/x", "*.quay.io")
	f.Add("a.quay.io", "*.")
	f.Fuzz(func(t *testing.T, image, prefix string) {
		g := NewWithT(t)
		if !within(image, prefix) {
			return
		}
		if domain, wildcard := strings.CutPrefix(prefix, "*"); wildcard && strings.HasPrefix(domain, ".") {
			host, _, _ := strings.Cut(image, "/")
			g.Expect(host).To(HaveSuffix(domain))
			return
		}
		g.Expect(image == prefix || strings.HasPrefix(image, prefix+"/") || strings.HasPrefix(image, prefix+"@") ||
			strings.HasPrefix(image, prefix+":")).To(BeTrue())
	})
}
