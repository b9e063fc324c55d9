package assistedsim

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	ignition "github.com/coreos/ignition/v2/config/v3_1"
	igntypes "github.com/coreos/ignition/v2/config/v3_1/types"
	"k8s.io/utils/ptr"
)

// agentImage is the agent image in the discovery ignition. No host runs it.
const agentImage = "quay.io/edge-infrastructure/assisted-installer-agent:latest"

// discoveryIgnition returns the Ignition (spec 3.1.0) that starts the discovery agent of the InfraEnv.
func (s *Simulator) discoveryIgnition(record *infraEnv) ([]byte, error) {
	config := igntypes.Config{Ignition: igntypes.Ignition{Version: igntypes.MaxVersion.String()}}
	config.Systemd.Units = []igntypes.Unit{{
		Name: "agent.service", Enabled: ptr.To(true), Contents: ptr.To(s.agentUnit(record)),
	}}
	config.Storage.Files = []igntypes.File{
		ignitionFile("/root/.docker/config.json", record.pullSecret, 0o600),
		ignitionFile("/etc/motd", []byte("This is a host being installed by the OpenShift Assisted Installer.\n"), 0o644),
	}
	if bundle := record.spec.AdditionalTrustBundle; bundle != "" {
		config.Storage.Files = append(config.Storage.Files,
			ignitionFile("/etc/pki/ca-trust/source/anchors/assisted-infraenv-additional-trust-bundle.pem", []byte(bundle), 0o600))
	}
	if record.mirrors != nil {
		config.Storage.Files = append(config.Storage.Files,
			ignitionFile("/etc/containers/registries.conf", []byte(record.mirrors[registriesKey]), 0o644),
			ignitionFile("/etc/pki/ca-trust/source/anchors/domain.crt", []byte(record.mirrors[bundleKey]), 0o644))
	}
	networks, err := networkFiles(record.networks)
	if err != nil {
		return nil, err
	}
	config.Storage.Files = append(config.Storage.Files, networks...)
	if key := record.spec.SSHAuthorizedKey; key != "" {
		config.Passwd.Users = []igntypes.PasswdUser{{
			Name: "core", SSHAuthorizedKeys: []igntypes.SSHAuthorizedKey{igntypes.SSHAuthorizedKey(key)},
		}}
	}
	if override := record.spec.IgnitionConfigOverride; override != "" {
		parsed, report, err := ignition.ParseCompatibleVersion([]byte(override))
		if err != nil {
			return nil, fmt.Errorf("cannot parse ignitionConfigOverride: %w (%s)", err, report.String())
		}
		config = ignition.Merge(config, parsed)
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("cannot marshal discovery ignition: %w", err)
	}
	return data, nil
}

func ignitionFile(path string, content []byte, mode int) igntypes.File {
	return igntypes.File{
		Node: igntypes.Node{
			Path: path, Overwrite: ptr.To(true), User: igntypes.NodeUser{Name: ptr.To("root")},
		},
		FileEmbedded1: igntypes.FileEmbedded1{
			Mode:     ptr.To(mode),
			Contents: igntypes.Resource{Source: ptr.To("data:," + url.PathEscape(string(content)))},
		},
	}
}

func (s *Simulator) agentUnit(record *infraEnv) string {
	var unit strings.Builder
	unit.WriteString("[Service]\nType=simple\nRestart=always\nRestartSec=3\nStartLimitInterval=0\n")
	if proxy := record.spec.Proxy; proxy != nil {
		fmt.Fprintf(&unit, "Environment=HTTP_PROXY=%s\nEnvironment=HTTPS_PROXY=%s\nEnvironment=NO_PROXY=%s\n",
			proxy.HTTPProxy, proxy.HTTPSProxy, proxy.NoProxy)
	}
	if record.token != "" {
		fmt.Fprintf(&unit, "Environment=PULL_SECRET_TOKEN=%s\n", record.token)
	}
	fmt.Fprintf(&unit, "TimeoutStartSec=3000\nExecStartPre=podman run --privileged --rm -v /usr/local/bin:/hostbin %s cp "+
		"/usr/bin/agent /hostbin\n", agentImage)
	fmt.Fprintf(&unit, "ExecStart=/usr/local/bin/agent --url %s --infra-env-id %s --agent-version %s --insecure=true\n",
		s.serviceURL, record.id, agentImage)
	unit.WriteString("\n[Unit]\nWants=network-online.target\nAfter=network-online.target\n\n[Install]\nWantedBy=multi-user.target\n")
	return unit.String()
}
