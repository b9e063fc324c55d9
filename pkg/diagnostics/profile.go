package diagnostics

import (
	"crypto/tls"
	"slices"
)

// adheringOnly is the value of spec.tlsAdherence of an APIServer with which components keep their own settings, unless
// they followed the profile before the field existed. It is also the default.
const adheringOnly = "LegacyAdheringComponentsOnly"

// hubAPIServer is what the APIServer cluster of OpenShift (config.openshift.io/v1) requests of all servers in its cluster.
type hubAPIServer struct {
	Spec struct {
		Adherence string `json:"tlsAdherence"`
		Profile   struct {
			Type   string       `json:"type"`
			Custom *profileSpec `json:"custom"`
		} `json:"tlsSecurityProfile"`
	} `json:"spec"`
}

// profileSpec is a profile in the words of OpenShift, with the names of cipher suites in OpenSSL.
type profileSpec struct {
	Ciphers    []string `json:"ciphers"`
	MinVersion string   `json:"minTLSVersion"`
}

// settings are those of a profile. An empty list has the default suites of Go.
type settings struct {
	minVersion uint16
	suites     []uint16
}

// settingsOf returns the settings that an APIServer requests; nil if components keep their own settings. A component
// treats an unknown adherence as that of all components.
func settingsOf(s *hubAPIServer) *settings {
	if s.Spec.Adherence == "" || s.Spec.Adherence == adheringOnly {
		return nil
	}
	spec, known := profiles[s.Spec.Profile.Type]
	switch {
	case s.Spec.Profile.Type == "Custom" && s.Spec.Profile.Custom != nil:
		spec = *s.Spec.Profile.Custom
	case !known: // none is given
		spec = profiles["Intermediate"]
	}
	return spec.settings()
}

// settings returns the settings of a profile. Suites that Go does not have are left out. Without any suite for TLS 1.2,
// only TLS 1.3 is left, whose suites cannot be chosen. An unknown version is a newer one.
func (p profileSpec) settings() *settings {
	s := &settings{minVersion: tls.VersionTLS13}
	if version, known := protocols[p.MinVersion]; known {
		s.minVersion = version
	}
	for _, name := range p.Ciphers {
		if id, known := suites[name]; known {
			s.suites = append(s.suites, id)
		}
	}
	if len(s.suites) == 0 {
		s.minVersion = tls.VersionTLS13
	}
	return s
}

// apply changes the settings of a server. HTTP/2 prohibits most suites of TLS 1.2 (RFC 9113, appendix A).
func (s *settings) apply(config *tls.Config) {
	config.MinVersion, config.CipherSuites = s.minVersion, s.suites
	suits := func(id uint16) bool { return slices.Contains(ephemeral, id) }
	if s.minVersion < tls.VersionTLS13 && !slices.ContainsFunc(s.suites, suits) {
		config.NextProtos = []string{"http/1.1"}
	}
}

var protocols = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12,
	"VersionTLS13": tls.VersionTLS13,
}

// profiles are the predefined profiles of OpenShift (TLSProfiles in config/v1/types_tlssecurityprofile.go of
// openshift/api, from version 5.7 of Mozilla's guidelines), without the suites of TLS 1.3.
var profiles = map[string]profileSpec{
	"Old": {MinVersion: "VersionTLS10", Ciphers: append(slices.Clone(intermediate),
		"ECDHE-ECDSA-AES128-SHA256", "ECDHE-RSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA", "ECDHE-RSA-AES128-SHA",
		"ECDHE-ECDSA-AES256-SHA", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA256",
		"AES128-SHA", "AES256-SHA", "DES-CBC3-SHA")},
	"Intermediate": {MinVersion: "VersionTLS12", Ciphers: intermediate},
	"Modern":       {MinVersion: "VersionTLS13"},
}

var intermediate = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
	"ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
}

// ephemeral are the suites of TLS 1.2 that HTTP/2 permits.
var ephemeral = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// suites are the suites of TLS 1.2 and before by their names in OpenSSL (openSSLToIANACiphersMap in pkg/crypto of
// openshift/library-go).
var suites = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA256":     tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-RSA-AES128-SHA256":       tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	"AES128-GCM-SHA256":             tls.TLS_RSA_WITH_AES_128_GCM_SHA256,
	"AES256-GCM-SHA384":             tls.TLS_RSA_WITH_AES_256_GCM_SHA384,
	"AES128-SHA256":                 tls.TLS_RSA_WITH_AES_128_CBC_SHA256,
	"AES128-SHA":                    tls.TLS_RSA_WITH_AES_128_CBC_SHA,
	"AES256-SHA":                    tls.TLS_RSA_WITH_AES_256_CBC_SHA,
	"DES-CBC3-SHA":                  tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
}
