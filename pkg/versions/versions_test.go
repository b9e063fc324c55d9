package versions

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
)

func TestKubernetesMinorIsKnownUpToRelease50(t *testing.T) {
	for release, want := range map[string]uint64{
		"4.14.0": 27, "4.15.59": 28, "4.16.2": 29, "4.17.30": 30, "4.18.1": 31, "4.19.3": 32, "4.20.5": 33, "4.21.7": 34,
		"4.22.15": 35, "4.23.0": 36, "5.0.0": 36, "5.0.0-ec.1": 36, "4.20.0-okd-scos.7": 33, "4.15.0-0.okd-2024-03-10-010116": 28,
		"4.17.0-0.okd-scos-2024-09-30-101739": 30, "4.19.0-okd-scos.ec.5": 32,
	} {
		minor, known := KubernetesMinor(semver.MustParse(release))
		g := NewWithT(t)
		g.Expect(known).To(BeTrue(), release)
		g.Expect(minor).To(Equal(want), release)
	}
	for _, release := range []string{"4.13.50", "4.24.0", "5.1.0", "6.0.0", "3.11.0", "1.33.5"} {
		_, known := KubernetesMinor(semver.MustParse(release))
		NewWithT(t).Expect(known).To(BeFalse(), release)
	}
}

func TestSameKubernetesIgnoresHash(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"v1.29.6+aba1e8d", "1.29.6", true},
		{"v1.29.6+aba1e8d", "v1.29.6+bbb1e8d", true},
		{"v1.33.5", "v1.33.5", true},
		{"v1.33.5", "v1.33.6", false},
		{"v1.33.5", "v1.34.5", false},
		{"v1.33.5-rc.1", "v1.33.5", false},
		{"v4.20.5", "v4.20.5", false},
		{"", "", false},
		{"garbage", "garbage", false},
	} {
		NewWithT(t).Expect(SameKubernetes(tc.a, tc.b)).To(Equal(tc.same), "%q and %q", tc.a, tc.b)
	}
}

func TestContradict(t *testing.T) {
	for _, tc := range []struct {
		release, kubernetes string
		contradict          bool
	}{
		{"4.20.5", "1.33.5", false},
		{"4.16.2", "1.29.6+aba1e8d", false},
		{"4.17.30", "1.29.12", true},
		{"5.0.0", "1.36.4", false},
		{"5.0.0", "1.37.0", true},
		{"5.1.0", "1.37.0", false}, // no known rule
	} {
		NewWithT(t).Expect(Contradict(semver.MustParse(tc.release), semver.MustParse(tc.kubernetes))).To(Equal(tc.contradict),
			"%s with %s", tc.release, tc.kubernetes)
	}
}

func TestIsRelease(t *testing.T) {
	for version, release := range map[string]bool{
		"v4.19.10": true, "4.20.8": true, "v5.0.0": true, "4.20": true, "v4.20.0-okd-scos.7": true,
		"v1.33.5": false, "1.29.6+aba1e8d": false, "": false, "latest": false, "v": false,
	} {
		NewWithT(t).Expect(IsRelease(version)).To(Equal(release), version)
	}
}

// FuzzKubernetes checks the strings that kubelets report: with hash, with suffix, garbage, empty.
func FuzzKubernetes(f *testing.F) {
	for _, seed := range []string{
		"v1.29.6+aba1e8d", "v1.33.5", "1.33.5", "v1.36.4-rc.1", "v1.30.5+6816ea6", "v1.33", "v4.20.5", "", "v", "+", "v1.33.5+", "vv1.33.5",
		"v1.33.5 ", "v01.33.5", strings.Repeat("1.", 100), "v1.33.5+00", "v1.99999999999999999999.0", "v1.33.5\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, version string) {
		g := NewWithT(t)
		v, err := ParseKubernetes(version)
		g.Expect(SameKubernetes(version, version)).To(Equal(err == nil))
		if err != nil {
			g.Expect(len(err.Error())).To(BeNumerically("<", 512))
			return
		}
		g.Expect(IsRelease(version)).To(BeFalse())
		g.Expect(version).To(BeElementOf(v.String(), "v"+v.String()), "the text is the version, byte by byte")
		g.Expect(v.Compare(semver.MustParse(strings.TrimPrefix(version, "v")))).To(BeZero())
		v.Build = nil
		g.Expect(SameKubernetes(version, v.String())).To(BeTrue())
	})
}
