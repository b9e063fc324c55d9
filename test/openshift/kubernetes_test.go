package openshift

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

func TestKubernetesVersion(t *testing.T) {
	for release, want := range map[string]struct{ reported, stated string }{
		"4.14.0": {"v1.27.6+b49f9d1", "1.27.6"}, "4.15.59": {"v1.28.15+d227d65", "1.28.15"}, "4.16.2": {"v1.29.6+aba1e8d", "1.29.6"},
		"v4.17.30": {"v1.30.12", "1.30.12"}, "4.19.3": {"v1.32.5", "1.32.5"}, "4.20.0-ec.1": {"v1.33.5", "1.33.5"},
		"4.20.0-okd-scos.7": {"v1.33.5", "1.33.5"}, "4.21.3": {"v1.34.2", "1.34.2"}, "4.21.17": {"v1.34.5", "1.34.5"},
		"4.22.7": {"v1.35.6", "1.35.6"}, "4.22.11": {"v1.35.6", "1.35.6"}, "4.22.15": {"v1.35.6", "1.35.6"},
		"5.0.3": {"v1.36.4", "1.36.4"},
	} {
		g := NewWithT(t)
		reported, err := KubernetesVersion(release)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(reported).To(Equal(want.reported), release)
		stated, err := StatedKubernetes(release)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(stated).To(Equal(want.stated), release)
	}
	for _, release := range []string{"4.13.0", "4.24.0", "6.0.0", "4.20", ""} {
		_, err := KubernetesVersion(release)
		NewWithT(t).Expect(err).To(HaveOccurred(), release)
	}
}

// The simulated releases have no version that the product excludes.
func TestKubernetesVersionsFollowRule(t *testing.T) {
	for _, k := range kubernetes {
		g := NewWithT(t)
		version, err := versions.ParseKubernetes(k.version)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(versions.Contradict(semver.MustParse(k.release), version)).To(BeFalse(), k.release)
	}
}
