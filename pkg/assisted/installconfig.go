package assisted

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
)

// Capabilities selects optional components of an OpenShift cluster.
type Capabilities struct {
	// Baseline is None, vCurrent or a minor release such as v4.18. Empty: None on bare metal, vCurrent otherwise.
	Baseline string
	// Additional capabilities, besides those of the baseline.
	Additional []string
}

// bareMetalCapability is a capability that a cluster on platform baremetal needs when its baseline is None, and the first minor release of
// OpenShift 4 that knows it: the installer refuses names that it does not know.
type bareMetalCapability struct {
	name  string
	since uint64
}

// bareMetalCapabilities are sorted as they are written, for a value that never changes by itself. The releases are those in which
// ClusterVersion's known capabilities got them; 4.14 is the oldest release that is supported at all.
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

// InstallConfigOverrides returns the JSON that is merged into the install-config: the capabilities, and over them the given JSON objects, the
// last of which wins. Empty layers are ignored. The same input gives the same bytes.
func InstallConfigOverrides(c Capabilities, bareMetal bool, version semver.Version, layers ...string) (string, error) {
	result := map[string]any{"capabilities": capabilities(c, bareMetal, version)}
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
	data, err := json.Marshal(result) // sorts the keys
	if err != nil {
		return "", fmt.Errorf("cannot encode the install-config override: %w", err)
	}
	return string(data), nil
}

func capabilities(c Capabilities, bareMetal bool, version semver.Version) map[string]any {
	baseline, additional := c.Baseline, []string{}
	switch {
	case bareMetal && (baseline == "" || baseline == "None"):
		baseline = "None"
		for _, known := range bareMetalCapabilities {
			if version.Major > 4 || version.Minor >= known.since {
				additional = append(additional, known.name)
			}
		}
	case baseline == "":
		baseline = "vCurrent"
	}
	for _, name := range c.Additional {
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

// merge puts from over into: objects are merged, everything else is replaced.
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
