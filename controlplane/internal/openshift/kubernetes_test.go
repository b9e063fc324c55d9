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
			}
			for _, part := range tc.conflict {
				g.Expect(found).To(ContainSubstring(part))
			}
		})
	}
}

// Cluster API refuses a lower version of a topology, and another version before the control plane reports one.
func TestKubernetesConflictOfTopology(t *testing.T) {
	const raise, early = "Set spec.topology.version of the Cluster to ", "before the cluster is installed"
	for situation, tc := range map[string]struct {
		release, contained, wanted string
		provisioning               bool
		// advised is the advice about the version. If it is "", cause is why the version is fixed.
		advised, cause string
	}{
		"the release first": {
			release: "4.20.8", contained: "v1.33.5", wanted: "v1.32.7", advised: raise + "v1.33.5, or set",
		},
		"the version is set first, too high":     {release: "4.20.8", contained: "v1.33.5", wanted: "v1.33.6", cause: "no lower version"},
		"unknown image, the version is too high": {release: "4.20.8", wanted: "v1.34.1", cause: "no lower version"},
		"unknown image, the version is too low":  {release: "4.20.8", wanted: "v1.32.1", advised: raise},
		"from 4.23 to 5.0 with a lower patch":    {release: "5.0.0", contained: "v1.36.4", wanted: "v1.36.5", cause: "no lower version"},
		"before the installation, a newer release": {
			release: "4.20.8", contained: "v1.33.5", wanted: "v1.32.7", provisioning: true, cause: early,
		},
		"before the installation, an older release": {
			release: "4.20.8", contained: "v1.33.5", wanted: "v1.33.6", provisioning: true, cause: early,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, settings := NewWithT(t), SettingsOf(true)
			settings.Provisioning = tc.provisioning
			found := KubernetesConflict(semver.MustParse(tc.release), tc.contained, tc.wanted, settings)
			g.Expect(found).To(And(ContainSubstring("set the variable of the Cluster's topology that sets spec.distributionVersion"),
				HaveSuffix("to a release with Kubernetes "+tc.wanted)))
			if tc.advised != "" {
				g.Expect(found).To(ContainSubstring(tc.advised))
			} else {
				g.Expect(found).To(And(ContainSubstring(tc.cause), Not(ContainSubstring("spec.topology.version"))))
			}
		})
	}
}
