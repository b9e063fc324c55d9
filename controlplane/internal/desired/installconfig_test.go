package desired

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestInstallConfigOverrides(t *testing.T) {
	new419, old414 := semver.MustParse("4.19.3"), semver.MustParse("4.14.9")
	for situation, tc := range map[string]struct {
		capabilities *controlplanev1.Capabilities
		bareMetal    bool
		version      semver.Version
		layers       []string
		result       string
	}{
		"platform none takes all there is": {version: new419, result: `{"capabilities":{"baselineCapabilitySet":"vCurrent"}}`},
		"bare metal takes what it needs": {
			bareMetal: true, version: new419,
			result: `{"capabilities":{"additionalEnabledCapabilities":["baremetal","Console","Insights","OperatorLifecycleManager","Ingress","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"a release is not told of capabilities that it does not know": {
			bareMetal: true, version: old414,
			result: `{"capabilities":{"additionalEnabledCapabilities":["baremetal","Console","Insights","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"a baseline of the user's stands alone": {
			capabilities: &controlplanev1.Capabilities{BaselineCapability: "v4.18", AdditionalEnabledCapabilities: []string{"Storage"}}, bareMetal: true, version: new419,
			result: `{"capabilities":{"additionalEnabledCapabilities":["Storage"],"baselineCapabilitySet":"v4.18"}}`,
		},
		"objects are merged, the last layer wins": {
			version: new419, layers: []string{`{"a":{"b":1,"c":2},"fips":false}`, `{"a":{"c":3},"fips":true}`, ""},
			result: `{"a":{"b":1,"c":3},"capabilities":{"baselineCapabilitySet":"vCurrent"},"fips":true}`,
		},
		"the user wins over the capabilities": {
			version: new419, layers: []string{`{"capabilities":{"baselineCapabilitySet":"None"}}`},
			result: `{"capabilities":{"baselineCapabilitySet":"None"}}`,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			for range 5 { // the same bytes each time
				result, err := installConfigOverrides(tc.capabilities, tc.bareMetal, tc.version, tc.layers...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result).To(Equal(tc.result))
			}
		})
	}
	_, err := installConfigOverrides(nil, false, new419, `{"pullSecret": hush`)
	NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring("hush"))))
}
