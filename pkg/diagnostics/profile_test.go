package diagnostics

import (
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
)

// Go has no suite with these names.
var missingInGo = []string{"ECDHE-ECDSA-AES256-SHA384", "ECDHE-RSA-AES256-SHA384", "AES256-SHA256"}

func TestProfilesAreThoseOfOpenShift(t *testing.T) {
	g := NewWithT(t)
	for name, profile := range configv1.TLSProfiles {
		t.Run(string(name), func(t *testing.T) {
			g := NewWithT(t)
			var old []string
			for _, cipher := range profile.Ciphers {
				if !strings.HasPrefix(cipher, "TLS_") && !slices.Contains(missingInGo, cipher) {
					g.Expect(suites).To(HaveKey(cipher))
					old = append(old, cipher)
				}
			}
			g.Expect(profiles).To(HaveKeyWithValue(string(name), profileSpec{MinVersion: string(profile.MinTLSVersion), Ciphers: old}))
		})
	}
	g.Expect(profiles).To(HaveLen(len(configv1.TLSProfiles)))
}

func TestSettingsOfProfile(t *testing.T) {
	custom := func(version string, ciphers ...string) hubAPIServer {
		s := hubAPIServer{}
		s.Spec.Adherence, s.Spec.Profile.Type = "StrictAllComponents", "Custom"
		s.Spec.Profile.Custom = &profileSpec{MinVersion: version, Ciphers: ciphers}
		return s
	}
	named := func(adherence, profile string) hubAPIServer {
		s := hubAPIServer{}
		s.Spec.Adherence, s.Spec.Profile.Type = adherence, profile
		return s
	}
	recommended := profiles["Intermediate"].settings()
	for situation, tc := range map[string]struct {
		server hubAPIServer
		wanted *settings
	}{
		"no adherence: flags apply":                 {named("", "Modern"), nil},
		"adherence of some components: flags apply": {named("LegacyAdheringComponentsOnly", "Modern"), nil},
		"unknown adherence is that of all":          {named("StricterThanStrict", "Modern"), &settings{minVersion: tls.VersionTLS13}},
		"no profile is Intermediate":                {named("StrictAllComponents", ""), recommended},
		"custom without content is Intermediate":    {named("StrictAllComponents", "Custom"), recommended},
		"unknown profile is Intermediate":           {named("StrictAllComponents", "Future"), recommended},
		"only TLS 1.3 is left of unknown suites":    {custom("VersionTLS12", "ECDHE-FUTURE"), &settings{minVersion: tls.VersionTLS13}},
		"a newer version requires the newest of Go": {custom("VersionTLS14"), &settings{minVersion: tls.VersionTLS13}},
		"suites of TLS 1.3 are not configured": {
			custom("VersionTLS12", "TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
			&settings{minVersion: tls.VersionTLS12, suites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(settingsOf(&tc.server)).To(Equal(tc.wanted))
		})
	}
}

func TestSuitesThatHTTP2ProhibitsTurnItOff(t *testing.T) {
	for cipher, protocols := range map[string][]string{"AES128-SHA": {"http/1.1"}, "ECDHE-RSA-AES128-GCM-SHA256": {"h2"}} {
		config := &tls.Config{NextProtos: []string{"h2"}}
		profileSpec{MinVersion: "VersionTLS12", Ciphers: []string{cipher}}.settings().apply(config)
		NewWithT(t).Expect(config.NextProtos).To(Equal(protocols), cipher)
	}
}
