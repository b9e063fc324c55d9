package upgradeplan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// clusterWith returns a Cluster with a variable; without one if the value is "".
func clusterWith(name, value string) *clusterv1.Cluster {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "site"}}
	cluster.Spec.Topology.Variables = []clusterv1.ClusterVariable{
		{Name: "upgradeChannel", Value: apiextensionsv1.JSON{Raw: []byte(`"eus-4.20"`)}},
	}
	if value != "" {
		cluster.Spec.Topology.Variables = append(cluster.Spec.Topology.Variables,
			clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(value)}})
	}
	return cluster
}

const (
	threeMinors = `{"v1.31.2":"4.18.5","v1.32.5":"4.19.3","v1.32.7":"4.19.10","v1.33.5":"4.20.8"}`
	fiveMinors  = `{"v1.30.5":"4.17.3","v1.31.2":"4.18.5","v1.32.7":"4.19.10","v1.33.5":"4.20.8","v1.34.2":"4.21.3"}`
)

func TestPlan(t *testing.T) {
	for situation, tc := range map[string]struct {
		releases          string
		from, workers, to string
		controlPlane      []string
		ofWorkers         []string
	}{
		"two minor versions: the highest patch of the one between": {
			threeMinors, "v1.31.2", "v1.31.2", "v1.33.5", []string{"v1.32.7", "v1.33.5"}, []string{"v1.32.7", "v1.33.5"},
		},
		"after the first step: the workers have to follow": {
			threeMinors, "v1.32.7", "v1.31.2", "v1.33.5", []string{"v1.33.5"}, []string{"v1.32.7", "v1.33.5"},
		},
		"after the first step of the workers": {threeMinors, "v1.32.7", "v1.32.7", "v1.33.5", []string{"v1.33.5"}, []string{"v1.33.5"}},
		"the control plane is complete":       {threeMinors, "v1.33.5", "v1.32.7", "v1.33.5", nil, []string{"v1.33.5"}},
		"complete, and the map was replaced":  {`"4.20.8"`, "v1.33.5", "v1.32.7", "v1.33.5", nil, []string{"v1.33.5"}},
		"complete":                            {threeMinors, "v1.33.5", "v1.33.5", "v1.33.5", nil, nil},
		"four minor versions, from an odd release": {
			fiveMinors, "v1.30.5", "v1.30.5", "v1.34.2",
			[]string{"v1.31.2", "v1.32.7", "v1.33.5", "v1.34.2"},
			[]string{"v1.31.2", "v1.32.7", "v1.33.5", "v1.34.2"},
		},
		"no workers":        {threeMinors, "v1.31.2", "", "v1.33.5", []string{"v1.32.7", "v1.33.5"}, nil},
		"one minor version": {threeMinors, "v1.31.2", "v1.31.2", "v1.32.5", []string{"v1.32.5"}, []string{"v1.32.5"}},
		"another patch":     {threeMinors, "v1.32.5", "v1.32.5", "v1.32.7", []string{"v1.32.7"}, []string{"v1.32.7"}},
		"another hash": {
			`{"v1.29.6+bbb":"4.16.2"}`, "v1.29.6+aaa", "", "v1.29.6+bbb", []string{"v1.29.6+bbb"}, nil,
		},
		"the hash of kubelets before 4.17": {
			`{"v1.28.9+2f7b992":"4.15.9","v1.29.6+aba1e8d":"4.16.2","v1.30.5":"4.17.3"}`, "v1.28.9+2f7b992", "v1.28.9+2f7b992", "v1.30.5",
			[]string{"v1.29.6+aba1e8d", "v1.30.5"},
			[]string{"v1.29.6+aba1e8d", "v1.30.5"},
		},
		"two releases with the same minor version of Kubernetes": {
			`{"v1.35.6":"4.22.7","v1.36.1":"4.23.2","v1.36.4":"5.0.3"}`, "v1.35.6", "v1.35.6", "v1.36.4",
			[]string{"v1.36.4"},
			[]string{"v1.36.4"},
		},
		"a release without a known rule": {
			`{"v1.37.1":"5.1.3"}`, "v1.36.4", "v1.36.4", "v1.37.1", []string{"v1.37.1"}, []string{"v1.37.1"},
		},
		"releases of OKD": {
			`{"v1.32.7":"4.19.0-okd-scos.5","v1.33.5":"4.20.0-okd-scos.7"}`, "v1.31.2", "v1.31.2", "v1.33.5",
			[]string{"v1.32.7", "v1.33.5"},
			[]string{"v1.32.7", "v1.33.5"},
		},
		"objects": {
			`{"v1.32.7":{"release":"4.19.10","image":"quay.io/x@sha256:1"},"v1.33.5":{"release":"4.20.8"}}`, "v1.31.2", "v1.31.2", "v1.33.5",
			[]string{"v1.32.7", "v1.33.5"},
			[]string{"v1.32.7", "v1.33.5"},
		},
		"a wrong release that is no step": {
			`{"v1.31.2":"4.1","v1.32.7":"4.19.10","v1.33.5":"4.20.8","v1.34.2":null}`, "v1.31.2", "v1.31.2", "v1.33.5",
			[]string{"v1.32.7", "v1.33.5"},
			[]string{"v1.32.7", "v1.33.5"},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			request := Request{From: tc.from, FromWorkers: tc.workers, To: tc.to}
			g.Expect(Compute(clusterWith("releases", tc.releases), request, nil)).To(Equal(Plan{tc.controlPlane, tc.ofWorkers}))
			last := map[string]string{"releasesVariable": "map", "workersUpgrades": "LastStep"}
			g.Expect(Compute(clusterWith("map", tc.releases), request, last)).To(Equal(Plan{tc.controlPlane, nil}), "Cluster API plans the workers")
		})
	}
}

// Cluster API reports the message in TopologyReconciled of the Cluster, and changes nothing.
func TestNoPlan(t *testing.T) {
	manyReleases := `{"v1.33.5":"4.20.8"` + strings.Repeat(`,"v1.32.%d":"4.19.1"`, maxEntries) + "}"
	numbers := make([]any, maxEntries)
	for i := range numbers {
		numbers[i] = i
	}
	for situation, tc := range map[string]struct {
		releases string
		from, to string
		settings map[string]string
		message  string
	}{
		"a hole": {
			`{"v1.31.2":"4.18.5","v1.33.5":"4.20.8"}`, "v1.31.2", "v1.33.5", nil, "variable releases of Cluster lab/site has no release with " +
				"Kubernetes 1.32, and the control plane is upgraded from v1.31.2 to v1.33.5: add one release of each",
		},
		"several holes": {`{"v1.34.2":"4.21.3"}`, "v1.31.2", "v1.34.2", nil, "Kubernetes 1.32, 1.33, and"},
		"no last version": {
			`{"v1.32.7":"4.19.10","v1.33.4":"4.20.7"}`, "v1.31.2", "v1.33.5", nil, "no release with Kubernetes v1.33.5, and",
		},
		"the last version with another hash": {`{"v1.29.6+aaa":"4.16.2"}`, "v1.28.9", "v1.29.6", nil, "no release with Kubernetes v1.29.6, and"},
		"no variable": {
			"", "v1.31.2", "v1.33.5", nil, "variable releases of Cluster lab/site does not exist: set it to a map of releases by Kubernetes " +
				"version, or name another variable with releasesVariable in spec.settings of the ExtensionConfig",
		},
		"another variable": {
			threeMinors, "v1.31.2", "v1.33.5", map[string]string{"releasesVariable": "other"}, "variable other of Cluster lab/site does not exist",
		},
		"a release instead of a map": {`"4.20.8"`, "v1.31.2", "v1.33.5", nil, "variable releases of Cluster lab/site is no map of releases"},
		"null":                       {`null`, "v1.31.2", "v1.33.5", nil, "is no map of releases"},
		"a key without v":            {`{"1.32.7":"4.19.10","v1.33.5":"4.20.8"}`, "v1.31.2", "v1.33.5", nil, "has invalid keys: 1.32.7."},
		"a key without patch":        {`{"v1.32":"4.19.10","v1.33.5":"4.20.8"}`, "v1.31.2", "v1.33.5", nil, "has invalid keys: v1.32."},
		"a release as key":           {`{"v4.19.10":"4.19.10"}`, "v1.31.2", "v1.33.5", nil, "has invalid keys: v4.19.10."},
		"an empty key":               {`{"":"4.19.10"}`, "v1.31.2", "v1.33.5", nil, "has invalid keys: "},
		"a long key": {
			`{"v1.32.7+` + strings.Repeat("a", maxKey) + `":"4.19.10"}`, "v1.31.2", "v1.33.5", nil, "has invalid keys: v1.32.7+aaa",
		},
		"a release that YAML shortens": {
			`{"v1.33.5":4.2}`, "v1.32.7", "v1.33.5", nil, `for v1.33.5, but 4.2: set a release such as "4.20.8", in quotes`,
		},
		"a release without patch": {
			`{"v1.33.5":"4.20"}`, "v1.32.7", "v1.33.5", nil, `no release for v1.33.5, but "4.20": set a release such as`,
		},
		"no release": {`{"v1.33.5":null}`, "v1.32.7", "v1.33.5", nil, `no release for v1.33.5, but ""`},
		"a wrong release between": {
			`{"v1.32.7":"4.20.8","v1.33.5":"4.20.8"}`, "v1.31.2", "v1.33.5", nil, "release 4.20.8 for v1.32.7, but the release has Kubernetes 1.33",
		},
		"two builds of a version": {
			`{"v1.29.6+aaa":"4.16.2","v1.29.6+bbb":"4.16.2","v1.29.5":"4.16.1","v1.30.5":"4.17.3"}`, "v1.28.9", "v1.30.5", nil,
			"several releases with Kubernetes v1.29.6, which differ only in their build metadata",
		},
		"too large":        {`{"v1.33.5":"` + strings.Repeat("4", maxBytes) + `"}`, "v1.32.7", "v1.33.5", nil, "bytes, the limit is 65536"},
		"too many":         {fmt.Sprintf(manyReleases, numbers...), "v1.32.7", "v1.33.5", nil, "has 257 releases, the limit is 256"},
		"back":             {threeMinors, "v1.33.5", "v1.32.7", nil, "spec.topology.version v1.32.7 is older than version v1.33.5"},
		"too far":          {threeMinors, "v1.31.2", "v1.63.0", nil, "v1.63.0 is more than 31 minor versions ahead"},
		"an invalid end":   {threeMinors, "v1.31.2", "v4.20.8", nil, `spec.topology.version is invalid: "v4.20.8"`},
		"an invalid start": {threeMinors, "", "v1.33.5", nil, "the control plane has an invalid version"},
		"an unknown setting": {
			threeMinors, "v1.31.2", "v1.33.5",
			map[string]string{"workersUpgrade": "LastStep"},
			`unknown setting or value: workersUpgrade="LastStep". Set`,
		},
		"an unknown value": {
			threeMinors, "v1.31.2", "v1.33.5", map[string]string{"workersUpgrades": "Last"}, "workersUpgrades to EachStep or LastStep",
		},
		"an empty name": {
			threeMinors, "v1.31.2", "v1.33.5", map[string]string{"releasesVariable": ""}, `unknown setting or value: releasesVariable=""`,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			plan, err := Compute(clusterWith("releases", tc.releases), Request{From: tc.from, FromWorkers: tc.from, To: tc.to}, tc.settings)
			g.Expect(err).To(MatchError(ContainSubstring(tc.message)))
			g.Expect(plan).To(BeZero())
			g.Expect(len(err.Error())).To(BeNumerically("<", 500), "foreign texts are shortened")
		})
	}
}

// The file lists the plans for all upgrades between some versions. A test in test/tools/cluster-api passes them to the function by
// which Cluster API validates plans, whose module this one does not require.
func TestPlansForClusterAPI(t *testing.T) {
	g := NewWithT(t)
	listed := []string{"v1.28.9+2f7b992", "v1.29.6+aba1e8d", "v1.30.5", "v1.31.2", "v1.32.5", "v1.32.7", "v1.33.5", "v1.34.2"}
	content, err := json.Marshal(map[string]string{
		listed[0]: "4.15.9", listed[1]: "4.16.2", listed[2]: "4.17.3", listed[3]: "4.18.5", listed[4]: "4.19.3", listed[5]: "4.19.10",
		listed[6]: "4.20.8", listed[7]: "4.21.3",
	})
	g.Expect(err).NotTo(HaveOccurred())
	var lines strings.Builder
	for end, to := range listed {
		for start, from := range listed[:end+1] {
			for _, workers := range append([]string{""}, listed[:start+1]...) {
				if tooOld(workers, from) {
					continue
				}
				for _, mode := range []string{eachStep, lastStep} {
					plan, err := Compute(clusterWith("releases", string(content)), Request{From: from, FromWorkers: workers, To: to},
						map[string]string{workersSetting: mode})
					g.Expect(err).NotTo(HaveOccurred())
					fmt.Fprintf(&lines, "%s,%s,%s,%s,%s\n", from, workers, to, strings.Join(plan.ControlPlane, " "), strings.Join(plan.Workers, " "))
				}
			}
		}
	}
	golden := filepath.Join("testdata", "plans.csv")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		g.Expect(os.WriteFile(golden, []byte(lines.String()), 0o600)).To(Succeed())
	}
	want, err := os.ReadFile(golden)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lines.String()).To(Equal(string(want)), "run the test with UPDATE_GOLDEN=1, and then the test in test/tools/cluster-api")
}

// tooOld reports whether workers are so old that Cluster API and OpenShift would not have upgraded the control plane.
func tooOld(workers, controlPlane string) bool {
	of, err := versions.ParseKubernetes(workers)
	than, _ := versions.ParseKubernetes(controlPlane)
	return err == nil && of.Minor+3 < than.Minor
}
