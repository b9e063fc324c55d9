package registration

import (
	"testing"

	"github.com/blang/semver/v4"
	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

func TestInstallConfigOverrides(t *testing.T) {
	new419, old414 := semver.MustParse("4.19.3"), semver.MustParse("4.14.9")
	for situation, tc := range map[string]struct {
		capabilities *controlplanev1.Capabilities
		bareMetal    bool
		loadBalancer string
		version      semver.Version
		layers       []string
		result       string
	}{
		"platform none without capabilities: no override": {version: new419},
		"platform none, further capabilities": {
			capabilities: &controlplanev1.Capabilities{AdditionalEnabledCapabilities: []string{"Storage"}}, version: new419,
			result: `{"capabilities":{"additionalEnabledCapabilities":["Storage"],"baselineCapabilitySet":"vCurrent"}}`,
		},
		"user-managed load balancer without capabilities: no override": {bareMetal: true, loadBalancer: "UserManaged", version: new419},
		"user-managed load balancer, baseline None: with what bare metal needs": {
			capabilities: &controlplanev1.Capabilities{BaselineCapability: "None"}, bareMetal: true, loadBalancer: "UserManaged", version: old414,
			result: `{"capabilities":{"additionalEnabledCapabilities":` +
				`["baremetal","Console","Insights","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"bare metal gets the capabilities that it needs": {
			bareMetal: true, version: new419,
			result: `{"capabilities":{"additionalEnabledCapabilities":` +
				`["baremetal","Console","Insights","OperatorLifecycleManager",` +
				`"Ingress","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"an old release gets only known capabilities": {
			bareMetal: true, version: old414,
			result: `{"capabilities":{"additionalEnabledCapabilities":` +
				`["baremetal","Console","Insights","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"5.0 has the same capabilities as 4.19": {
			bareMetal: true, version: semver.MustParse("5.0.0"),
			result: `{"capabilities":{"additionalEnabledCapabilities":` +
				`["baremetal","Console","Insights","OperatorLifecycleManager",` +
				`"Ingress","marketplace","NodeTuning","DeploymentConfig"],"baselineCapabilitySet":"None"}}`,
		},
		"a baseline of the user is not extended": {
			capabilities: &controlplanev1.Capabilities{BaselineCapability: "v4.18", AdditionalEnabledCapabilities: []string{"Storage"}},
			bareMetal:    true,
			version:      new419,
			result:       `{"capabilities":{"additionalEnabledCapabilities":["Storage"],"baselineCapabilitySet":"v4.18"}}`,
		},
		"objects are merged, the last layer wins": {
			version: new419, layers: []string{`{"a":{"b":1,"c":2},"fips":false}`, `{"a":{"c":3},"fips":true}`, ""},
			result: `{"a":{"b":1,"c":3},"fips":true}`,
		},
		"the user overrides the capabilities": {
			version: new419, layers: []string{`{"capabilities":{"baselineCapabilitySet":"None"}}`},
			result: `{"capabilities":{"baselineCapabilitySet":"None"}}`,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			config := &controlplanev1.InstallationConfig{Capabilities: tc.capabilities}
			if tc.bareMetal {
				config.APIVIPs, config.IngressVIPs = []string{"192.168.111.5"}, []string{"192.168.111.4"}
			}
			if tc.loadBalancer != "" {
				config.LoadBalancer = &controlplanev1.LoadBalancer{Type: tc.loadBalancer}
			}
			for range 5 { // the same bytes each time
				result, err := installConfigOverrides(config, tc.version, tc.layers...)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(result).To(Equal(tc.result))
			}
		})
	}
	_, err := installConfigOverrides(&controlplanev1.InstallationConfig{}, new419, `{"pullSecret": hush`)
	NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring("hush"))))
}

// The installer of a release refuses capabilities that its API does not know. When a newer version of the API drops one,
// it must not be requested from that release on.
func TestCapabilitiesAreKnownToNewestAPI(t *testing.T) {
	for _, capability := range bareMetalCapabilities {
		NewWithT(t).Expect(configv1.KnownClusterVersionCapabilities).To(ContainElement(configv1.ClusterVersionCapability(capability.name)))
	}
}
