// Package upgradeplan computes the versions of Kubernetes through which Cluster API upgrades the topology of a Cluster. The
// versions are the keys of a variable of the Cluster, which maps versions of Kubernetes to releases. It has no client.
package upgradeplan

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// The limits of the map of releases.
const (
	maxBytes   = 64 << 10
	maxEntries = 256
	maxKey     = 64
	// maxMinors keeps the plans below the 32 versions that the status of a Cluster may list. The plan of the workers may begin with
	// the present version of the control plane.
	maxMinors = 31
)

// Request names the present and the desired Kubernetes versions of a topology.
type Request struct {
	// From is the version of the control plane. FromWorkers is the lowest version of the MachineDeployments; "" if there are none.
	From, FromWorkers string
	// To is the version of the topology.
	To string
}

// Plan lists the versions to set, in their order.
type Plan struct {
	ControlPlane []string
	// Workers is empty if Cluster API plans the workers: it sets the last version only, unless the skew would be too large.
	Workers []string
}

// Compute returns the upgrade plan of a Cluster. It contains the desired version. For each minor version in between, it contains
// the highest version in the map of releases. Errors are for users.
func Compute(cluster *clusterv1.Cluster, request Request, settings map[string]string) (Plan, error) {
	configured, err := parseSettings(settings)
	if err != nil {
		return Plan{}, err
	}
	steps, err := controlPlaneSteps(cluster, request, configured.variable)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{ControlPlane: steps}
	if configured.eachStep {
		plan.Workers = workersSteps(request, steps)
	}
	return plan, nil
}

func controlPlaneSteps(cluster *clusterv1.Cluster, request Request, variable string) ([]string, error) {
	from, err := versions.ParseKubernetes(request.From)
	if err != nil {
		return nil, fmt.Errorf("the control plane has an invalid version: %w", err)
	}
	to, err := versions.ParseKubernetes(request.To)
	switch {
	case err != nil:
		return nil, fmt.Errorf("spec.topology.version is invalid: %w", err)
	case request.From == request.To:
		return nil, nil
	case from.GT(to):
		return nil, fmt.Errorf("spec.topology.version %s is older than version %s of the control plane", request.To, request.From)
	case to.Minor-from.Minor > maxMinors:
		return nil, fmt.Errorf("spec.topology.version %s is more than %d minor versions ahead of version %s of the control plane", request.To,
			maxMinors, request.From)
	}
	releases, err := readReleases(cluster, variable)
	if err != nil {
		return nil, err
	}
	return releases.between(from, to, request.To)
}

// workersSteps returns the versions of the control plane that are newer than those of the workers. The present version of the
// control plane comes first: the workers may not have it yet.
func workersSteps(request Request, controlPlane []string) []string {
	workers, err := versions.ParseKubernetes(request.FromWorkers)
	if err != nil || request.FromWorkers == request.To {
		return nil
	}
	var steps []string
	for _, step := range append([]string{request.From}, controlPlane...) {
		if v, err := versions.ParseKubernetes(step); err == nil && v.GT(workers) && step != request.To {
			steps = append(steps, step)
		}
	}
	return append(steps, request.To)
}

// releases are the entries of the variable of a Cluster.
type releases struct {
	// name is that of the variable, for messages.
	name    string
	entries map[string]json.RawMessage
	parsed  map[string]semver.Version
}

func readReleases(cluster *clusterv1.Cluster, variable string) (*releases, error) {
	r := &releases{name: fmt.Sprintf("variable %s of Cluster %s/%s", bound.Value(variable), cluster.Namespace, cluster.Name)}
	at := slices.IndexFunc(cluster.Spec.Topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == variable })
	if at < 0 {
		return nil, fmt.Errorf("%s does not exist: set it to a map of releases by Kubernetes version, or name another variable with "+
			"%s in spec.settings of the ExtensionConfig", r.name, variableSetting)
	}
	raw := cluster.Spec.Topology.Variables[at].Value.Raw
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("%s has %d bytes, the limit is %d: remove old releases", r.name, len(raw), maxBytes)
	}
	if err := json.Unmarshal(raw, &r.entries); err != nil || r.entries == nil {
		return nil, fmt.Errorf("%s is no map of releases by Kubernetes version, such as {v1.33.5: 4.20.8}", r.name)
	}
	if len(r.entries) > maxEntries {
		return nil, fmt.Errorf("%s has %d releases, the limit is %d: remove old releases", r.name, len(r.entries), maxEntries)
	}
	return r, r.parse()
}

// parse checks the keys: a misspelled version would otherwise be skipped.
func (r *releases) parse() error {
	r.parsed = map[string]semver.Version{}
	var invalid []string
	for key := range r.entries {
		v, err := versions.ParseKubernetes(key)
		if err != nil || key[0] != 'v' || len(key) > maxKey {
			invalid = append(invalid, bound.Value(key))
		}
		r.parsed[key] = v
	}
	if len(invalid) > 0 {
		slices.Sort(invalid)
		return fmt.Errorf("%s has invalid keys: %s. A key is a Kubernetes version with leading v, such as v1.33.5", r.name, bound.List(invalid))
	}
	return nil
}

// between returns the highest version of each minor version between two versions, and the last version.
func (r *releases) between(from, to semver.Version, last string) ([]string, error) {
	var steps, missing []string
	for minor := from.Minor + 1; minor < to.Minor; minor++ {
		highest, err := r.highest(minor)
		switch {
		case err != nil:
			return nil, err
		case highest == "":
			missing = append(missing, fmt.Sprintf("1.%d", minor))
		}
		steps = append(steps, highest)
	}
	if _, listed := r.entries[last]; !listed {
		missing = append(missing, last)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s has no release with Kubernetes %s, and the control plane is upgraded from v%s to %s: add one release of "+
			"each", r.name, bound.List(missing), from, last)
	}
	steps = append(steps, last)
	for _, step := range steps {
		if err := r.check(step); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// highest returns the highest version with a minor version; "" if there is none. Versions that differ only in their build
// metadata have no order.
func (r *releases) highest(minor uint64) (string, error) {
	highest, tied := "", false
	for key, v := range r.parsed {
		switch {
		case v.Minor != minor:
		case highest == "" || v.GT(r.parsed[highest]):
			highest, tied = key, false
		case v.EQ(r.parsed[highest]):
			tied = true
		}
	}
	if tied {
		v := r.parsed[highest]
		return "", fmt.Errorf("%s has several releases with Kubernetes v%s, which differ only in their build metadata: remove all but one",
			r.name, v.FinalizeVersion())
	}
	return highest, nil
}

// check checks the release of a version before the upgrade begins. An object is not checked: only the ClusterClass knows which
// of its fields is the release.
func (r *releases) check(version string) error {
	var release string
	if raw := r.entries[version]; json.Unmarshal(raw, &release) != nil {
		if raw[0] == '{' {
			return nil
		}
		return fmt.Errorf("%s has no release for %s, but %s: set a release such as \"4.20.8\", in quotes", r.name, version,
			bound.Value(string(raw)))
	}
	v, err := versions.ParseRelease(release)
	switch minor, _ := versions.KubernetesMinor(v); {
	case err != nil:
		return fmt.Errorf("%s has no release for %s, but %q: set a release such as 4.20.8", r.name, version, bound.Value(release))
	case versions.Contradict(v, r.parsed[version]):
		return fmt.Errorf("%s has release %s for %s, but the release has Kubernetes 1.%d: correct the release or the version", r.name, v,
			version, minor)
	}
	return nil
}
