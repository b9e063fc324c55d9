package registration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// bareMetalCapability is a capability that a cluster on platform baremetal needs with the baseline None. The
// field since is the first minor release of OpenShift 4 with the capability: the installer refuses unknown
// names.
type bareMetalCapability struct {
	name  string
	since uint64
}

// bareMetalCapabilities are in the order of the output, which must be stable. The releases are those in which
// ClusterVersion's known capabilities include them; 4.14 is the oldest supported release. No release drops any of them:
// branch release-5.2 of openshift/api (August 2026) has baremetal and DeploymentConfig. The installer refuses platform
// baremetal without baremetal ("platform baremetal requires the baremetal capability").
var bareMetalCapabilities = []bareMetalCapability{
	{"baremetal", 11},
	{"Console", 12},
	{"Insights", 12},
	{"OperatorLifecycleManager", 15},
	{"Ingress", 16},
	{"marketplace", 11},
	{"NodeTuning", 13},
	{"DeploymentConfig", 14},
}

// installConfigOverrides returns the JSON that is merged into the install-config. It contains the
// capabilities, overridden by the given JSON objects, of which the last one wins. Empty layers are ignored.
// The same input gives the same bytes.
//
// The result is empty if nothing differs from the installer's defaults. Releases of assisted-service before
// April 2026 validate any override with the bootstrap host. A cluster with a user-managed load balancer has
// no bootstrap host until the installation starts (internal/installcfg/builder, "has no bootstrap host").
func installConfigOverrides(config *controlplanev1.InstallationConfig, version semver.Version, layers ...string) (string, error) {
	result := map[string]any{}
	if c := capabilities(config, version); c != nil {
		result["capabilities"] = c
	}
	for _, layer := range layers {
		if layer == "" {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(layer), &object); err != nil {
			// The text of the error may quote the user's input, which can hold credentials.
			return "", errors.New("the install-config override is not a JSON object")
		}
		merge(result, object)
	}
	if len(result) == 0 {
		return "", nil
	}
	data, err := json.Marshal(result) // sorts the keys
	if err != nil {
		return "", fmt.Errorf("cannot encode the install-config override: %w", err)
	}
	return string(data), nil
}

// capabilities returns the capabilities of the install-config: those of the spec, and on bare metal without a
// baseline those that such a cluster needs. It returns nil if the installer's default applies.
func capabilities(config *controlplanev1.InstallationConfig, version semver.Version) map[string]any {
	wanted := ptr.Deref(config.Capabilities, controlplanev1.Capabilities{})
	baseline, additional := wanted.BaselineCapability, []string{}
	switch {
	case onBareMetal(config) && (baseline == "None" || baseline == "" && !userManagedLoadBalancer(config)):
		baseline = "None"
		for _, known := range bareMetalCapabilities {
			if version.Major > 4 || version.Minor >= known.since {
				additional = append(additional, known.name)
			}
		}
	case baseline == "" && len(wanted.AdditionalEnabledCapabilities) == 0:
		return nil
	case baseline == "":
		baseline = "vCurrent"
	}
	for _, name := range wanted.AdditionalEnabledCapabilities {
		if !slices.Contains(additional, name) {
			additional = append(additional, name)
		}
	}
	result := map[string]any{"baselineCapabilitySet": baseline}
	if len(additional) > 0 {
		result["additionalEnabledCapabilities"] = additional
	}
	return result
}

// merge merges from into into: objects are merged, all other values are replaced.
func merge(into, from map[string]any) {
	for key, value := range from {
		object, isObject := value.(map[string]any)
		if below, both := into[key].(map[string]any); both && isObject {
			merge(below, object)
			continue
		}
		into[key] = value
	}
}
