package versions

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

const (
	// DefaultOCPRepository holds the release images of OpenShift.
	DefaultOCPRepository = "quay.io/openshift-release-dev/ocp-release"
	// DefaultOKDRepository holds the release images of OKD.
	DefaultOKDRepository = "quay.io/okd/scos-release"
)

// Repositories are the repositories of release images.
type Repositories struct{ OCP, OKD string }

// Registries returns the registries of the repositories, with their ports.
func (r Repositories) Registries() []string {
	registries := make([]string, 0, 2)
	for _, repository := range []string{r.OCP, r.OKD} {
		registry, _, _ := strings.Cut(repository, "/")
		if _, _, err := net.SplitHostPort(registry); err != nil { // without a port
			registry += ":443"
		}
		registries = append(registries, registry)
	}
	return registries
}

// OnLoopback reports whether an image is in the registry of one of the repositories, and that registry is a
// loopback address. Such a registry may use plain HTTP: its packets stay on the machine, and the flags of the
// manager named it. A name such as localhost is no loopback address, because a resolver decides its meaning.
func (r Repositories) OnLoopback(image string) bool {
	registry, _, _ := strings.Cut(image, "/")
	address, err := netip.ParseAddrPort(registry)
	return err == nil && address.Addr().IsLoopback() && slices.Contains(r.Registries(), registry)
}

// ParseRelease parses a release with or without leading v.
func ParseRelease(version string) (semver.Version, error) {
	v, err := semver.Parse(strings.TrimPrefix(version, "v"))
	if err != nil {
		return semver.Version{}, fmt.Errorf("version %q is not a release such as 4.19.3: %w", version, err)
	}
	return v, nil
}

// IsOKD reports whether the release is one of OKD: 4.19.0-okd-scos.5.
func IsOKD(v semver.Version) bool {
	for _, pre := range v.Pre {
		if strings.Contains(pre.VersionStr, "okd") {
			return true
		}
	}
	return false
}

// Image returns the release image of a version by tag. override, when not empty, replaces the repository of
// all releases. architecture is that of the control plane hosts; empty means x86_64. Tags of OKD's own
// repository have no architecture.
func Image(v semver.Version, architecture, override string, repositories Repositories) string {
	tag := v.String()
	if strings.Contains(tag, "+") {
		// A tag cannot hold '+'; releases are published with '_' instead.
		tag = strings.ReplaceAll(tag, "+", "_")
	}
	switch {
	case override != "":
		return override + ":" + tag + "-" + tagArchitecture(architecture)
	case IsOKD(v):
		return repositories.OKD + ":" + tag
	default:
		return repositories.OCP + ":" + tag + "-" + tagArchitecture(architecture)
	}
}

// tagArchitecture returns the architecture as spelled in tags of release images.
func tagArchitecture(architecture string) string {
	switch architecture {
	case "":
		return "x86_64"
	case "arm64":
		return "aarch64"
	default:
		return architecture
	}
}
