// Package diagnostics serves metrics, profiles and the log level of a manager to clients that the API server
// authenticates and authorizes.
//
// The flags are those of all Cluster API providers. Their package (sigs.k8s.io/cluster-api/util/flags) and
// controller-runtime's filter contain the authentication of a whole API server. It needs CEL, gRPC and
// OpenTelemetry.
package diagnostics

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/pprof"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Options are the flags of the diagnostics and TLS of a manager.
type Options struct {
	// Address serves the diagnostics.
	Address string
	// Insecure serves only metrics, without TLS, authentication and authorization.
	Insecure bool
	// TLSMinVersion and TLSCipherSuites restrict the TLS of all servers of the manager.
	TLSMinVersion   string
	TLSCipherSuites []string

	flags *pflag.FlagSet
	// hub has the settings of the TLS profile of an OpenShift hub; nil if the flags apply.
	hub atomic.Pointer[settings]
}

const minVersionFlag, cipherSuitesFlag = "tls-min-version", "tls-cipher-suites"

// AddFlags adds the flags to the set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.StringVar(&o.Address, "diagnostics-address", ":8443",
		"Address that serves metrics, profiles (/debug/pprof) and the log level (/debug/flags/v) over TLS to authorized clients.")
	fs.BoolVar(&o.Insecure, "insecure-diagnostics", false,
		"Serve metrics without TLS, authentication and authorization, and neither profiles nor the log level.")
	fs.StringVar(&o.TLSMinVersion, minVersionFlag, "VersionTLS12",
		"Minimum TLS version of the servers of the manager: "+strings.Join(cliflag.TLSPossibleVersions(), ", ")+".\n"+
			"If it or --tls-cipher-suites is set, the servers do not follow the TLS profile of an OpenShift hub.")
	fs.StringSliceVar(&o.TLSCipherSuites, cipherSuitesFlag, nil,
		"Cipher suites of the servers of the manager, separated by commas. The default suites of Go when empty.\n"+
			"Preferred values: "+strings.Join(cliflag.PreferredTLSCipherNames(), ", ")+".\n"+
			"Insecure values: "+strings.Join(cliflag.InsecureTLSCipherNames(), ", ")+".")
}

// TLS returns the TLS settings of the manager's servers: those of the flags, or for new connections those of the profile
// that [Options.Follow] follows. Its error names the invalid flag.
func (o *Options) TLS() (func(*tls.Config), error) {
	version, err := cliflag.TLSVersion(o.TLSMinVersion)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", minVersionFlag, err)
	}
	suites, err := cliflag.TLSCipherSuites(o.TLSCipherSuites)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", cipherSuitesFlag, err)
	}
	return func(config *tls.Config) {
		config.MinVersion = version
		if len(suites) > 0 {
			config.CipherSuites = suites
		}
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			followed := o.hub.Load()
			if followed == nil {
				return nil, nil //nolint:nilnil // config itself applies
			}
			client := config.Clone()
			client.GetConfigForClient = nil
			followed.apply(client)
			return client, nil
		}
	}, nil
}

// Server returns the options of the server of the diagnostics.
func (o *Options) Server() (metricsserver.Options, error) {
	settings, err := o.TLS()
	if err != nil || o.Insecure {
		return metricsserver.Options{BindAddress: o.Address}, err
	}
	return metricsserver.Options{
		BindAddress:    o.Address,
		SecureServing:  true,
		FilterProvider: NewFilter,
		TLSOpts:        []func(*tls.Config){settings},
		ExtraHandlers: map[string]http.Handler{
			"/debug/flags/v":       http.HandlerFunc(setLogLevel),
			"/debug/pprof/":        http.HandlerFunc(pprof.Index),
			"/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
			"/debug/pprof/profile": http.HandlerFunc(pprof.Profile),
			"/debug/pprof/symbol":  http.HandlerFunc(pprof.Symbol),
			"/debug/pprof/trace":   http.HandlerFunc(pprof.Trace),
		},
	}, nil
}
