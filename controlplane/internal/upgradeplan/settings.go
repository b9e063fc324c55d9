package upgradeplan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// The settings in spec.settings of the ExtensionConfig, and their values.
const (
	// variableSetting names the variable of Clusters with the map of releases.
	variableSetting = "releasesVariable"
	defaultVariable = "releases"
	// workersSetting selects which versions the workers get.
	workersSetting = "workersUpgrades"
	// eachStep gives the workers each version of the control plane. It is the default: no MachineConfigPool must be paused.
	eachStep = "EachStep"
	// lastStep leaves the plan of the workers to Cluster API, which gives them only the last version.
	lastStep = "LastStep"
)

type configuration struct {
	variable string
	eachStep bool
}

// parseSettings refuses unknown settings: with a misspelled one, hosts would be restarted more often than the user wants.
func parseSettings(settings map[string]string) (configuration, error) {
	parsed := configuration{variable: defaultVariable, eachStep: true}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		switch value := settings[name]; {
		case name == variableSetting && value != "":
			parsed.variable = value
		case name == workersSetting && (value == eachStep || value == lastStep):
			parsed.eachStep = value == eachStep
		default:
			return configuration{}, fmt.Errorf("spec.settings of the ExtensionConfig has an unknown setting or value: %s=%q. Set %s to the name "+
				"of a variable, and %s to %s or %s", bound.Value(name), bound.Value(value), variableSetting, workersSetting, eachStep, lastStep)
		}
	}
	return parsed, nil
}
