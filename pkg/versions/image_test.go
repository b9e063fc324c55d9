package versions

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestImage(t *testing.T) {
	repositories := Repositories{OCP: DefaultOCPRepository, OKD: DefaultOKDRepository}
	for situation, tc := range map[string]struct{ version, architecture, override, image string }{
		"OpenShift":                {"4.19.3", "", "", "quay.io/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		"leading v":                {"v4.19.3", "x86_64", "", "quay.io/openshift-release-dev/ocp-release:4.19.3-x86_64"},
		"arm64 is spelled aarch64": {"4.19.3", "arm64", "", "quay.io/openshift-release-dev/ocp-release:4.19.3-aarch64"},
		"release candidate":        {"4.20.0-rc.2", "", "", "quay.io/openshift-release-dev/ocp-release:4.20.0-rc.2-x86_64"},
		"OKD without architecture": {"4.19.0-okd-scos.5", "", "", "quay.io/okd/scos-release:4.19.0-okd-scos.5"},
		"override":                 {"4.19.3", "aarch64", "mirror.lab:5000/ocp", "mirror.lab:5000/ocp:4.19.3-aarch64"},
		"override for OKD":         {"4.19.0-okd-scos.5", "", "mirror.lab/okd", "mirror.lab/okd:4.19.0-okd-scos.5-x86_64"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v, err := ParseRelease(tc.version)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(Image(v, tc.architecture, tc.override, repositories)).To(Equal(tc.image))
		})
	}
}

func TestRegistries(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Repositories{OCP: DefaultOCPRepository, OKD: "[::1]:5000/okd"}.Registries()).To(Equal([]string{"quay.io:443", "[::1]:5000"}))
	g.Expect(Repositories{OCP: "localhost/x", OKD: DefaultOKDRepository}.Registries()).To(Equal([]string{"localhost:443", "quay.io:443"}))
}

// registries.conf and annotations of a cluster must not direct the manager to ports of its own Pod.
func TestOnLoopback(t *testing.T) {
	for image, want := range map[string]bool{
		"127.0.0.1:5000/ocp/release:4.19.3":   true,
		"127.0.0.1:5000/tenant:4.19.3":        true,
		"[::1]:5000/okd:4.19.3":               true,
		"127.0.0.1:50001/ocp/release:4.19.3":  false,
		"127.0.0.1:8443/x:4.19.3":             false,
		"127.0.0.1:500/x:4.19.3":              false,
		"10.1.2.3:5000/ocp/release:4.19.3":    false,
		"localhost:5000/ocp/release:4.19.3":   false,
		"127.0.0.1.example.com:5000/x:4.19.3": false,
	} {
		NewWithT(t).Expect(Repositories{OCP: "127.0.0.1:5000/ocp/release", OKD: "[::1]:5000/okd"}.OnLoopback(image)).To(Equal(want),
			image)
	}
	NewWithT(t).Expect(Repositories{OCP: "localhost:5000/x", OKD: "10.1.2.3:5000/x"}.OnLoopback("localhost:5000/x:1")).To(BeFalse())
	NewWithT(t).Expect(Repositories{OCP: "10.1.2.3:5000/x"}.OnLoopback("10.1.2.3:5000/x:1")).To(BeFalse())
}
