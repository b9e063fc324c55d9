package openshift

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
)

func TestKubernetesConflict(t *testing.T) {
	for situation, tc := range map[string]struct {
		release, contained, wanted string
		conflict                   []string
	}{
		"the version of the image": {"4.20.8", "v1.33.5", "v1.33.5", nil},
		"without leading v":        {"4.20.8", "v1.33.5", "1.33.5", nil},
		"another patch": {
			"4.20.8", "v1.33.6", "v1.33.5", []string{
				"release 4.20.8 has Kubernetes v1.33.6", "Set spec.version to v1.33.6, or set spec.distributionVersion to",
			},
		},
		"another minor version":              {"4.20.8", "v1.33.5", "v1.32.7", []string{"a release with Kubernetes v1.32.7"}},
		"unknown image: a patch is believed": {"4.20.8", "", "v1.33.99", nil},
		"unknown image, another minor version": {
			"4.20.8", "", "v1.32.7", []string{"release 4.20.8 has Kubernetes 1.33.", "oc adm release info"},
		},
		"unknown image, no rule for the release":   {"5.1.0", "", "v1.32.7", nil},
		"unknown image of 5.0":                     {"5.0.1", "", "v1.35.6", []string{"has Kubernetes 1.36"}},
		"the image has no hash":                    {"4.16.2", "v1.29.6", "v1.29.6+aba1e8d", nil},
		"another patch of a release with a hash":   {"4.16.2", "v1.29.8", "v1.29.6+aba1e8d", []string{"to v1.29.8, with the hash"}},
		"a version that cannot be read, as before": {"4.16.2", "v1.29.8", "01.2", nil},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			found := KubernetesConflict(semver.MustParse(tc.release), tc.contained, tc.wanted, SettingsOf(false))
			if tc.conflict == nil {
				g.Expect(found).To(BeEmpty())
			} else {
				g.Expect(KubernetesConflict(semver.MustParse(tc.release), tc.contained, tc.wanted, SettingsOf(true))).To(
					And(ContainSubstring("Set spec.topology.version of the Cluster to "), ContainSubstring("or set the variable of the Cluster's")))
			}
			for _, part := range tc.conflict {
				g.Expect(found).To(ContainSubstring(part))
			}
		})
	}
}
