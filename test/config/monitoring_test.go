package config_test

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	tools "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// The recorded objects for the Argo CD checks have none of these states.
const (
	// installingHost is a host in a stage of its installation.
	installingHost = "OpenshiftAssistedConfig-in-a-stage"
	// withToken is a control plane whose kubeconfig has a token.
	withToken = "OpenshiftAssistedControlPlane-with-a-token"
	// upgradingCluster is a control plane whose cluster is being upgraded, with a paused MachineConfigPool.
	upgradingCluster = "OpenshiftAssistedControlPlane-upgrading"
)

// stateMetrics returns the metrics of kube-state-metrics for recorded objects.
func stateMetrics(t *testing.T, recorded ...string) string {
	t.Helper()
	g := NewWithT(t)
	arguments := []string{"run", ".", absolute(t, "../../config/monitoring/kube-state-metrics.yaml")}
	for _, name := range recorded {
		path := "../../config/argocd/testdata/" + name + ".yaml"
		if name == installingHost || name == withToken || name == upgradingCluster {
			path = "../../config/monitoring/testdata/" + name + ".yaml"
		}
		arguments = append(arguments, absolute(t, path))
	}
	cmd := exec.CommandContext(t.Context(), "go", arguments...)
	cmd.Dir = "../tools/kube-state-metrics"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred(), stderr.String())
	return string(printed)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return path
}

func TestKubeStateMetricsHasSeriesOfOurObjects(t *testing.T) {
	g := NewWithT(t)
	of := func(kind, labels, more, name, value string) string {
		return `(?m)^capi_` + kind + `_` + name +
			`\{cluster_name="[^"]+",customresource_group="[^"]+",customresource_kind="[^"]+",customresource_version="v1beta1",` +
			labels + more + `\} ` + value + `$`
	}
	controlPlane := func(name, more, value string) string {
		return of("openshiftassistedcontrolplane", `name="[^"]+",namespace="[^"]+",`, more+`.*uid="[^"]+"`, name, value)
	}
	installing := stateMetrics(t, "OpenshiftAssistedControlPlane-Progressing-Installing")
	for _, metric := range []string{
		controlPlane("created", "", `1\.\d+e\+09`),
		controlPlane("spec_replicas", "", `[135]`),
		controlPlane("status_replicas", "", `[135]`),
		controlPlane("status_installation_phase", `phase="Installing",`, "1"),
		controlPlane("status_installation_percentage", "", `\d0`),
		controlPlane("status_installation_start_time", "", `1\.\d+e\+09`),
		controlPlane("status_installation_attempt_time", "", `1\.\d+e\+09`),
	} {
		g.Expect(installing).To(MatchRegexp(metric))
	}
	for _, metric := range []string{
		`capi_openshiftassistedcontrolplane_status_condition\{.*status="False",type="Available".*\} 1`,
		`capi_openshiftassistedcontrolplane_status_condition_last_transition_time\{.*status="False",type="Available".*\} 1\.\d+e\+09`,
		`capi_openshiftassistedcontrolplane_status_condition\{.*reason="Installing",status="False",type="Installed".*\} 1`,
		`capi_openshiftassistedcontrolplane_info\{.*wanted_distribution_version="[v0-9.]+".*\} 1`,
	} {
		g.Expect(installing).To(MatchRegexp(metric))
	}
	g.Expect(installing).NotTo(ContainSubstring("kubeconfig_expiration_time{"), "no token exists yet")
	g.Expect(stateMetrics(t, withToken)).To(MatchRegexp(controlPlane("status_kubeconfig_expiration_time", "", `1\.797\d+e\+09`)))
	for _, other := range []string{`phase="Installed"`, `status="True",type="Available"`, "status_upgrade", "pool_behind"} {
		g.Expect(installing).NotTo(MatchRegexp(`(?m)^capi.*`+other), "only true states have a series")
	}
	upgrading := stateMetrics(t, upgradingCluster)
	for _, metric := range []string{
		`capi_openshiftassistedcontrolplane_status_upgrade_info\{.*distribution_version="4.20.1".*\} 1`,
		`capi_openshiftassistedcontrolplane_status_upgrade_percentage\{.*\} 30`,
		`capi_openshiftassistedcontrolplane_status_pool_behind\{.*pool="worker".*\} 1`,
		`capi_openshiftassistedcontrolplane_status_pool_behind\{.*pool="infra".*\} 1`,
		`capi_openshiftassistedcontrolplane_status_condition\{.*reason="MachineConfigPoolPaused",status="True",type="RollingOut".*\} 1`,
	} {
		g.Expect(upgrading).To(MatchRegexp(metric))
	}
	host := stateMetrics(t, "OpenshiftAssistedConfig-Degraded-HostInstallationFailed")
	for _, metric := range []string{
		`capi_openshiftassistedconfig_created\{.*\} 1\.\d+e\+09`,
		`capi_openshiftassistedconfig_info\{.*boot_mode="[A-Za-z]+".*\} 1`,
		`capi_openshiftassistedconfig_owner\{.*owner_kind="Machine".*\} 1`,
		`capi_openshiftassistedconfig_status_condition\{.*reason="HostInstallationFailed",status="False",type="Ready".*\} 1`,
	} {
		g.Expect(host).To(MatchRegexp(metric))
	}
	g.Expect(host).NotTo(ContainSubstring("installation_stage_start_time"), "a host without stage has no series")
	inAStage := stateMetrics(t, installingHost)
	for _, metric := range []string{
		`capi_openshiftassistedconfig_status_installation_stage_start_time\{.*stage="Writing image to disk".*\} 1\.\d+e\+09`,
		`capi_openshiftassistedconfig_status_installation_percentage\{.*\} 42`,
	} {
		g.Expect(inAStage).To(MatchRegexp(metric))
	}
}

// The number of series, more than their size, determines the cost of Prometheus: with 3,500 clusters each
// series here counts 3,500 times. A StateSet has one series per state.
func TestSeriesPerClusterAreWithinBudget(t *testing.T) {
	for name, budget := range map[string]int{
		"OpenshiftAssistedControlPlane-Healthy": 44, "OpenshiftAssistedControlPlane-Progressing-Installing": 45,
		"OpenshiftAssistedConfig-Healthy": 23, installingHost: 23, upgradingCluster: 46,
	} {
		series := 0
		for _, line := range strings.Split(stateMetrics(t, name), "\n") {
			if strings.HasPrefix(line, "capi_") {
				series++
			}
		}
		NewWithT(t).Expect(series).To(And(BeNumerically("<=", budget), BeNumerically(">", 5)), name)
	}
}

// rules returns the PrometheusRule in the form that Prometheus reads, and the expressions of the alerts.
func rules(t *testing.T) (content []byte, expressions map[string]string) {
	t.Helper()
	g := NewWithT(t)
	file, err := os.ReadFile("../../config/monitoring/prometheusrule.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var rule struct {
		Spec struct {
			Groups []struct {
				Name  string           `json:"name"`
				Rules []map[string]any `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	g.Expect(yaml.Unmarshal(file, &rule)).To(Succeed())
	expressions = map[string]string{}
	for _, group := range rule.Spec.Groups {
		for _, alert := range group.Rules {
			expressions[alert["alert"].(string)] = alert["expr"].(string)
		}
	}
	content, err = yaml.Marshal(rule.Spec)
	g.Expect(err).NotTo(HaveOccurred())
	return content, expressions
}

func TestAlertsFireWithExpectedMessages(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	program, missing := tools.Promtool()
	g.Expect(missing).NotTo(HaveOccurred())
	content, expressions := rules(t)
	tests, err := os.ReadFile("../../config/monitoring/testdata/alerts.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for alert := range expressions {
		g.Expect(string(tests)).To(ContainSubstring("alertname: "+alert+"\n"), "an untested alert")
	}
	g.Expect(os.WriteFile(filepath.Join(dir, "rules.yaml"), content, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "alerts.yaml"), tests, 0o600)).To(Succeed())
	output, err := exec.CommandContext(t.Context(), program, "test", "rules", filepath.Join(dir, "alerts.yaml")).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
}

var (
	metricName = regexp.MustCompile(`\bcapi_[a-z_]+`)
	ownMetric  = regexp.MustCompile(`Name: "([a-z_]+)"`)
)

// An alert about a metric that no manager exposes would never fire.
func TestAlertsUseExistingMetrics(t *testing.T) {
	g := NewWithT(t)
	var metrics strings.Builder
	metrics.WriteString("\n" + stateMetrics(t, "OpenshiftAssistedControlPlane-Progressing-Installing", withToken,
		"OpenshiftAssistedConfig-Degraded-HostInstallationFailed"))
	source, err := os.ReadFile("../../pkg/measure/measure.go")
	g.Expect(err).NotTo(HaveOccurred())
	for _, name := range ownMetric.FindAllStringSubmatch(string(source), -1) {
		metrics.WriteString("\ncapi_openshift_agent_" + name[1] + "{")
	}
	_, expressions := rules(t)
	for alert, expression := range expressions {
		for _, name := range metricName.FindAllString(expression, -1) {
			g.Expect(metrics.String()).To(ContainSubstring("\n"+strings.TrimSuffix(name, "_count")+"{"), alert)
		}
	}
}

// The alert about hosts lists each reason that needs an action of the user. Another alert reports that
// assisted-service does not respond.
func TestAlertAboutHostsListsReasonsThatNeedAction(t *testing.T) {
	g := NewWithT(t)
	_, expressions := rules(t)
	named := regexp.MustCompile(`reason=~"([^"]*)"`).FindStringSubmatch(expressions["OpenshiftAgentHostNeedsAttention"])
	g.Expect(named).To(HaveLen(2))
	urgent, reasons := namesIn(t, "../../bootstrap/internal/status/stages.go", "urgent"),
		reasonsOf(t, "../../bootstrap/api/v1beta1/conditions.go")
	var wanted []string
	for name, reason := range reasons {
		if slices.Contains(urgent, name) && !slices.Contains(append(passing, "AssistedServiceNotResponding"), reason) {
			wanted = append(wanted, reason)
		}
	}
	g.Expect(strings.Split(named[1], "|")).To(ConsistOf(wanted))
}

// The monitoring manifests, which users apply separately, select the managers of the providers.
func TestMonitoringSelectsManagers(t *testing.T) {
	g := NewWithT(t)
	applied := map[string]map[string]any{}
	for _, object := range components(t, "monitoring") {
		metadata := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		applied[strings.Join([]string{object["kind"].(string), namespace, metadata["name"].(string)}, "/")] = object
	}
	seen := map[string]bool{}
	for object := range applied {
		kind, name := path.Split(object)
		name = strings.Split(kind, "/")[0] + "/" + name
		g.Expect(seen).NotTo(HaveKey(name), "the chart installs both in one namespace, where the names would collide")
		seen[name] = true
	}
	for provider, namespace := range map[string]string{
		"bootstrap":    "openshift-agent-bootstrap-system",
		"controlplane": "openshift-agent-control-plane-system",
	} {
		manager := strings.TrimSuffix(strings.TrimPrefix(namespace, "openshift-agent-"), "system") + "manager"
		installed := map[string]map[string]any{}
		for _, object := range components(t, provider+"/default") {
			installed[object["kind"].(string)+"/"+object["metadata"].(map[string]any)["name"].(string)] = object
		}
		deployment := installed["Deployment/"+strings.TrimSuffix(namespace, "system")+"controller-manager"]
		g.Expect(deployment).NotTo(BeNil())
		labels, _, _ := unstructured.NestedStringMap(deployment, "spec", "template", "metadata", "labels")
		labelOfJob, _, _ := unstructured.NestedString(applied["PodMonitor/"+namespace+"/"+manager], "spec", "jobLabel")
		g.Expect(labels).To(HaveKey(labelOfJob))
		_, expressions := rules(t)
		g.Expect(expressions["OpenshiftAgentManagerDown"]).To(ContainSubstring(`up{job="`+labels[labelOfJob]+`"}`),
			"the job is the provider, in any namespace")
		for _, selector := range [][]string{
			{"PodMonitor", "spec", "selector", "matchLabels"},
			{"NetworkPolicy", "spec", "podSelector", "matchLabels"},
		} {
			selected, _, _ := unstructured.NestedStringMap(applied[selector[0]+"/"+namespace+"/"+manager], selector[1:]...)
			g.Expect(selected).To(HaveKey("cluster.x-k8s.io/provider"), "%s must select one of two managers in one namespace", selector[0])
			for key, value := range selected {
				g.Expect(labels).To(HaveKeyWithValue(key, value), selector[0])
			}
		}
		role, _, _ := unstructured.NestedString(applied["ClusterRoleBinding//"+strings.TrimSuffix(namespace, "system")+"metrics-scraper"],
			"roleRef", "name")
		g.Expect(installed).To(HaveKey("ClusterRole/" + role))

		containers, _, _ := unstructured.NestedSlice(deployment, "spec", "template", "spec", "containers")
		ports, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "ports")
		var served []any
		for _, port := range ports {
			served = append(served, port.(map[string]any)["name"])
		}
		endpoints, _, _ := unstructured.NestedSlice(applied["PodMonitor/"+namespace+"/"+manager], "spec", "podMetricsEndpoints")
		g.Expect(endpoints).To(HaveLen(1))
		g.Expect(served).To(ContainElement(endpoints[0].(map[string]any)["port"]))
		ingress, _, _ := unstructured.NestedSlice(applied["NetworkPolicy/"+namespace+"/"+manager], "spec", "ingress")
		var open []any
		for _, rule := range ingress {
			for _, port := range rule.(map[string]any)["ports"].([]any) {
				open = append(open, port.(map[string]any)["port"])
			}
		}
		g.Expect(open).To(ConsistOf(served), "exactly the ports of the manager are open")
	}
}
