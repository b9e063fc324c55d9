package hosts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// Boot is a boot of a host.
type Boot struct {
	// System is the system that runs since.
	System System
	// InfraEnvID is the InfraEnv of the discovery system; empty for other systems.
	InfraEnvID string
	// Source is the source of the system, without any token: the image, or the disk.
	Source string
}

// System is a kind of operating system that a host runs.
type System string

const (
	// Discovery is the discovery system of an InfraEnv: its agent registers with assisted-service.
	Discovery System = "discovery"
	// Installed is the OpenShift node that was written to the disk.
	Installed System = "installed"
	// Unknown is everything else: a host that runs it has escaped.
	Unknown System = "unknown"
)

// medium is the medium that a host was provisioned with.
type medium struct {
	boot Boot
	// token is the token in the URL of a live ISO, architecture its architecture; empty if the URL does not
	// contain it.
	token, architecture string
	// userData is the decoded user data of a disk image; nil for a live ISO.
	userData *Ignition
}

var (
	errNoInfraEnv    = errors.New("no InfraEnv")
	agentCommand     = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)
	agentFlag        = regexp.MustCompile(`\s--(url|infra-env-id|agent-version)[= ]\s*([^-\s]\S*)`)
	agentEnvironment = regexp.MustCompile(`(?m)^Environment="?PULL_SECRET_TOKEN=([^\s"]+)`)
)

// newMedium returns the medium of a machine that is provisioned with the image and the user data.
func newMedium(image metal3api.Image, userData []byte) medium {
	if image.IsLiveISO() {
		id, token, err := infraEnvOfISO(image.URL)
		if err != nil {
			return medium{boot: Boot{System: Unknown, Source: "live ISO " + withoutSecrets(image.URL)}}
		}
		iso := liveISO(id, token)
		iso.architecture = architectureOfISO(image.URL)
		return iso
	}
	source := "disk image " + withoutSecrets(image.URL)
	decoded, err := DecodeIgnition(userData)
	if err != nil {
		return medium{boot: Boot{System: Unknown, Source: source}}
	}
	agent, err := AgentConfigOf(decoded)
	if err != nil {
		return medium{boot: Boot{System: Unknown, Source: source}, userData: decoded}
	}
	return medium{boot: Boot{System: Discovery, InfraEnvID: agent.InfraEnvID, Source: source}, userData: decoded}
}

// liveISO returns the discovery ISO of an InfraEnv.
func liveISO(infraEnvID, token string) medium {
	return medium{boot: Boot{System: Discovery, InfraEnvID: infraEnvID, Source: "live ISO of InfraEnv " + infraEnvID}, token: token}
}

// bootOn returns what a machine boots from the medium: an unknown system if the medium is for another
// architecture.
func (m medium) bootOn(machine Hardware) Boot {
	if m.architecture == "" || goArchitecture(m.architecture) == goArchitecture(machine.Architecture) {
		return m.boot
	}
	return Boot{System: Unknown, Source: fmt.Sprintf("%s, which is for %s and not for %s", m.boot.Source, m.architecture,
		machine.Architecture)}
}

// architectureOfISO returns the path segment before the file name in a URL of the image service; empty if the
// URL has none.
func architectureOfISO(isoURL string) string {
	parsed, err := url.Parse(isoURL)
	if err != nil || path.Ext(parsed.Path) != ".iso" {
		return ""
	}
	return path.Base(path.Dir(parsed.Path))
}

// infraEnvOfISO returns the id of the InfraEnv of a discovery ISO from its URL, and the token in the URL:
// /byid/<id>/..., /byapikey/<JWT>/..., /bytoken/<JWT>/... or /images/<id>.
func infraEnvOfISO(isoURL string) (id, token string, err error) {
	parsed, err := url.Parse(isoURL)
	if err != nil {
		return "", "", fmt.Errorf("cannot read the URL of the ISO: %w", errNoInfraEnv)
	}
	segments := strings.Split(strings.Trim(parsed.Path, "/"), "/")
	for i, s := range segments[:len(segments)-1] {
		switch s {
		case "byid", "images":
			return segments[i+1], parsed.Query().Get("api_key"), nil
		case "byapikey", "bytoken":
			id, err := infraEnvOfToken(segments[i+1])
			return id, segments[i+1], err
		}
	}
	return "", "", fmt.Errorf("the URL does not belong to the image service: %w", errNoInfraEnv)
}

// infraEnvOfToken reads the claim that assisted-service sets in the token of an image. The image service
// verifies the signature.
func infraEnvOfToken(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("the token of the ISO is no JWT: %w", errNoInfraEnv)
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return "", fmt.Errorf("the token of the ISO is no JWT: %w", errNoInfraEnv)
	}
	var claims struct {
		InfraEnvID string `json:"infra_env_id"`
		Subject    string `json:"sub"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", fmt.Errorf("the token of the ISO has no claims: %w", errNoInfraEnv)
	}
	// The image service creates the tokens in /bytoken/ paths, with the id as their subject.
	if claims.InfraEnvID == "" {
		claims.InfraEnvID = claims.Subject
	}
	if claims.InfraEnvID == "" {
		return "", fmt.Errorf("the token of the ISO names no InfraEnv: %w", errNoInfraEnv)
	}
	return claims.InfraEnvID, nil
}

// AgentConfigOf returns the configuration with which the agent.service of an Ignition config starts the
// discovery agent.
func AgentConfigOf(config *Ignition) (AgentConfig, error) {
	unit, ok := config.Units["agent.service"]
	if !ok || unit.Masked || !unit.Enabled {
		return AgentConfig{}, fmt.Errorf("the ignition starts no agent.service: %w", errNoInfraEnv)
	}
	// systemd joins a line that ends with a backslash and the next line.
	contents := strings.ReplaceAll(unit.Contents, "\\\n", " ")
	agent := AgentConfig{}
	if command := agentCommand.FindStringSubmatch(contents); command != nil {
		for _, flag := range agentFlag.FindAllStringSubmatch(command[1], -1) {
			value := strings.Trim(flag[2], `"'`)
			switch flag[1] {
			case "url":
				agent.ServiceURL = value
			case "infra-env-id":
				agent.InfraEnvID = value
			case "agent-version":
				agent.AgentVersion = value
			}
		}
	}
	if agent.InfraEnvID == "" {
		return AgentConfig{}, fmt.Errorf("agent.service has no --infra-env-id: %w", errNoInfraEnv)
	}
	if token := agentEnvironment.FindStringSubmatch(contents); token != nil {
		agent.Token = token[1]
	}
	return agent, nil
}

// withoutSecrets returns a URL without parts that may be secret: user, query, fragment and tokens in the path.
func withoutSecrets(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	segments := strings.Split(parsed.Path, "/")
	for i := 1; i < len(segments); i++ {
		if segments[i-1] == "byapikey" || segments[i-1] == "bytoken" {
			segments[i] = "TOKEN"
		}
	}
	parsed.Path, parsed.RawPath = strings.Join(segments, "/"), ""
	return parsed.String()
}
