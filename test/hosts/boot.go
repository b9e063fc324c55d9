package hosts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
)

// Boot says what a host booted.
type Boot struct {
	// System is what runs since.
	System System
	// InfraEnvID is the InfraEnv of the discovery system; empty for other systems.
	InfraEnvID string
	// Source says where the system came from, without any token: the image, or the disk.
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

// medium is what a host was provisioned with.
type medium struct {
	boot Boot
	// userData is the decoded user data of a disk image; nil for a live ISO.
	userData *Ignition
}

var (
	errNoInfraEnv = errors.New("no InfraEnv")
	infraEnvFlag  = regexp.MustCompile(`(?m)^ExecStart=.*\s--infra-env-id[= ]([^\s]+)`)
)

// newMedium tells what a machine runs that is provisioned with the image and the user data.
func newMedium(image metal3api.Image, userData []byte) medium {
	if image.IsLiveISO() {
		id, err := InfraEnvOfISO(image.URL)
		if err != nil {
			return medium{boot: Boot{System: Unknown, Source: "live ISO " + withoutQuery(image.URL)}}
		}
		return medium{boot: Boot{System: Discovery, InfraEnvID: id, Source: "live ISO of InfraEnv " + id}}
	}
	source := "disk image " + withoutQuery(image.URL)
	decoded, err := DecodeIgnition(userData)
	if err != nil {
		return medium{boot: Boot{System: Unknown, Source: source}}
	}
	id, err := InfraEnvOfIgnition(decoded)
	if err != nil {
		return medium{boot: Boot{System: Unknown, Source: source}, userData: decoded}
	}
	return medium{boot: Boot{System: Discovery, InfraEnvID: id, Source: source}, userData: decoded}
}

// InfraEnvOfISO returns the id of the InfraEnv whose discovery ISO a URL of the image service serves:
// /byid/<id>/..., /byapikey/<JWT>/..., /bytoken/<JWT>/... or /images/<id>.
func InfraEnvOfISO(isoURL string) (string, error) {
	parsed, err := url.Parse(isoURL)
	if err != nil {
		return "", fmt.Errorf("cannot read the URL of the ISO: %w", errNoInfraEnv)
	}
	segments := strings.Split(strings.Trim(parsed.Path, "/"), "/")
	for i, s := range segments[:len(segments)-1] {
		switch s {
		case "byid", "images":
			return segments[i+1], nil
		case "byapikey", "bytoken":
			return infraEnvOfToken(segments[i+1])
		}
	}
	return "", fmt.Errorf("the URL is none of the image service: %w", errNoInfraEnv)
}

// infraEnvOfToken reads the claim that assisted-service puts into the token of an image. The signature is the image
// service's business.
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
	// Tokens in /bytoken/ paths are the image service's own and carry the id as their subject.
	if claims.InfraEnvID == "" {
		claims.InfraEnvID = claims.Subject
	}
	if claims.InfraEnvID == "" {
		return "", fmt.Errorf("the token of the ISO names none: %w", errNoInfraEnv)
	}
	return claims.InfraEnvID, nil
}

// InfraEnvOfIgnition returns the id of the InfraEnv for which the agent.service of an ignition registers the host.
func InfraEnvOfIgnition(config *Ignition) (string, error) {
	unit, ok := config.Units["agent.service"]
	if !ok || unit.Masked || !unit.Enabled {
		return "", fmt.Errorf("the ignition starts no agent.service: %w", errNoInfraEnv)
	}
	// systemd joins a line that ends with a backslash with the next one.
	match := infraEnvFlag.FindStringSubmatch(strings.ReplaceAll(unit.Contents, "\\\n", " "))
	if match == nil {
		return "", fmt.Errorf("agent.service has no --infra-env-id: %w", errNoInfraEnv)
	}
	return strings.Trim(match[1], `"'`), nil
}

// withoutQuery returns a URL without what may be secret in it.
func withoutQuery(raw string) string {
	parsed, err := url.Parse(raw)
	if err != nil {
		return "(not a URL)"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	return parsed.String()
}
