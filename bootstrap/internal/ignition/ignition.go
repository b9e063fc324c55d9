// Package ignition builds what an installed host gets beside what OpenShift gives it. Nothing in it is evaluated on the host except the
// user's own commands: everything particular to a host is known when the ignition is built.
package ignition

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/coreos/ignition/v2/config/util"
	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"k8s.io/utils/ptr"
)

// Input is what the ignition of one host is built from.
type Input struct {
	// NodeName is the name under which the kubelet registers. Empty: its own choice.
	NodeName string
	// KubeletLabels are set by the kubelet when it registers. Labels that the kubelet may not set itself are left out.
	KubeletLabels map[string]string
	// ProviderID is given to the kubelet. Empty: it is left to others.
	ProviderID string
	// PreCommands run before the kubelet starts, PostCommands after the Node has registered; each once.
	PreCommands, PostCommands []string
	// SentinelDir holds the files that mark commands as done. Default: /var/lib/openshift-agent.
	SentinelDir string
	// KubeconfigPath is the kubeconfig with which the host looks for its Node. Default: /var/lib/kubelet/kubeconfig.
	KubeconfigPath string
	// ServerCA are the certificates (PEM) by which the host recognises the machine config server of an installed cluster; assisted-service, from the middle of 2025 on, then has the host
	// fetch its configuration by HTTPS (GetIgnitionEndpointAndCert in its internal/host/hostutil). Empty: it gets none.
	ServerCA string
	// Overrides are merged over everything else, one after the other.
	Overrides []Override
}

// Override is an ignition that a user gives.
type Override struct {
	// Of is where it was given, for errors.
	Of string
	// Config is its JSON; empty: there is none.
	Config string
}

// Empty is the valid ignition that does nothing.
const Empty = `{"ignition":{"version":"3.1.0"}}`

// lowest is the version of an ignition that needs no other.
const lowest = "3.1.0"

// Build returns the JSON of the ignition. The same input gives the same bytes. The version is 3.1.0, or 3.2.0 where an override is of that: assisted-service takes
// these two (ParseToLatest in its internal/ignition).
func Build(in Input) (string, error) {
	config := types.Config{Ignition: types.Ignition{Version: lowest}}
	addNode(&config, in)
	addCommands(&config, in)
	addSuccessSentinel(&config)
	if in.ServerCA != "" {
		config.Ignition.Security.TLS.CertificateAuthorities = []types.Resource{{Source: dataURL(in.ServerCA)}}
	}
	overridden := false
	for _, o := range in.Overrides {
		if o.Config == "" {
			continue
		}
		if err := merge(&config, o.Config); err != nil {
			return "", fmt.Errorf("%s: the ignition override is not valid: %w", o.Of, err)
		}
		overridden = true
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("cannot encode the ignition: %w", err)
	}
	// What is generated here is valid whatever the input, which the tests check; validating it again for each host costs more than all else.
	if !overridden {
		return string(raw), nil
	}
	if _, err := Parse(raw); err != nil {
		return "", fmt.Errorf("the ignition with its overrides is not valid: %w", err)
	}
	return string(raw), nil
}

// merge lays an override over a config, which gets the version of the override where that is the newer one.
func merge(config *types.Config, override string) error {
	parsed, err := Parse([]byte(override))
	if err != nil {
		return err
	}
	version, _, err := util.GetConfigVersion([]byte(override))
	if err != nil {
		return fmt.Errorf("its version is not known: %w", err)
	}
	parsed.Ignition.Version = config.Ignition.Version
	if version.Equal(types.MaxVersion) {
		parsed.Ignition.Version = types.MaxVersion.String()
	}
	*config = v3_2.Merge(*config, parsed)
	return nil
}

// Parse decodes and validates an ignition of version 3.2.0 or older.
func Parse(raw []byte) (types.Config, error) {
	config, report, err := v3_2.ParseCompatibleVersion(raw)
	if err != nil {
		if report.IsFatal() {
			return types.Config{}, fmt.Errorf("%w: %s", err, report.String())
		}
		return types.Config{}, fmt.Errorf("it must be an ignition config of version 3.2.0, 3.1.0 or 3.0.0: %w", err)
	}
	return config, nil
}

func addFile(config *types.Config, path, contents string, mode int) {
	config.Storage.Files = append(config.Storage.Files, types.File{
		Node: types.Node{Path: path, Overwrite: ptr.To(true)},
		FileEmbedded1: types.FileEmbedded1{
			Mode:     ptr.To(mode),
			Contents: types.Resource{Source: dataURL(contents)},
		},
	})
}

func dataURL(contents string) *string {
	return ptr.To("data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(contents)))
}

func addUnit(config *types.Config, name, contents string) {
	config.Systemd.Units = append(config.Systemd.Units, types.Unit{Name: name, Enabled: ptr.To(true), Contents: ptr.To(contents)})
}
