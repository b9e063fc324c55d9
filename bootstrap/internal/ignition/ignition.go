// Package ignition builds the ignition of an installed host in addition to that of OpenShift. The host
// evaluates only the user's own commands: all settings that are particular to a host are known when the
// ignition is built.
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

// Input holds the data for the ignition of one host.
type Input struct {
	// NodeName is the name under which the kubelet registers; if empty, the kubelet chooses it.
	NodeName string
	// KubeletLabels are the labels that the kubelet sets when it registers. Labels that the kubelet may not
	// set are left out.
	KubeletLabels map[string]string
	// ProviderID is the providerID of the kubelet; if empty, another component sets it.
	ProviderID string
	// PreCommands run before the kubelet starts, PostCommands after the Node has registered. Each runs once.
	PreCommands, PostCommands []string
	// SentinelDir holds the files that mark commands as done. Default: /var/lib/openshift-agent.
	SentinelDir string
	// KubeconfigPath is the kubeconfig with which the host reads its Node. Default:
	// /var/lib/kubelet/kubeconfig.
	KubeconfigPath string
	// ServerCA are the certificates (PEM) with which the host verifies the machine config server of an
	// installed cluster; "" for none. With these, assisted-service, from the middle of 2025 on, makes the
	// host fetch its configuration by HTTPS (GetIgnitionEndpointAndCert in its internal/host/hostutil).
	ServerCA string
	// Overrides are merged over everything else, in their order.
	Overrides []Override
}

// Override is an ignition from a user.
type Override struct {
	// Of is the origin of the override, for errors.
	Of string
	// Config is the JSON of the ignition; "" for none.
	Config string
}

// Empty is the valid ignition without content.
const Empty = `{"ignition":{"version":"3.1.0"}}`

// minVersion is the version of an ignition that needs no newer one.
const minVersion = "3.1.0"

// Build returns the JSON of the ignition. The same input gives the same bytes. The version is 3.1.0, or 3.2.0
// if an override has that version: assisted-service accepts these two (ParseToLatest in its
// internal/ignition).
func Build(in Input) (string, error) {
	config := types.Config{Ignition: types.Ignition{Version: minVersion}}
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
	// The generated ignition is always valid, as the tests check. Validating it for each host is the most expensive step.
	if !overridden {
		return string(raw), nil
	}
	if _, err := Parse(raw); err != nil {
		return "", fmt.Errorf("the ignition with its overrides is not valid: %w", err)
	}
	return string(raw), nil
}

// merge merges an override over a config. The config gets the version of the override if that is newer.
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
