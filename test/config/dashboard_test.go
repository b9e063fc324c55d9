package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/lookup"
	tools "github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/components"
)

// sample is a series with its value in a response of Prometheus.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

var (
	grouping = regexp.MustCompile(`by \(([^)]*)\)`)
	inLegend = regexp.MustCompile(`{{([^}]*)}}`)
	ofValues = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)
	// attemptTime matches the start of an installation.
	attemptTime = regexp.MustCompile(`(?m)^(capi_openshiftassistedcontrolplane_status_installation_attempt_time\{.*\}) .*$`)
	// forGrafana replaces the variables of Grafana. Selected series must exist, not only be empty.
	forGrafana = strings.NewReplacer(`="$namespace"`, `=~".+"`, `="$cluster"`, `=~".+"`, "$namespace", ".+", "$cluster", ".+",
		"$__rate_interval", "1m")
)

// TestDashboardsShowSeries runs each query of the dashboards on a real Prometheus. Prometheus scrapes the
// metrics of our code, controller-runtime and kube-state-metrics.
func TestDashboardsShowSeries(t *testing.T) {
	g, all := NewWithT(t), dashboards(t)
	query := startPrometheus(t)
	g.Eventually(query).WithArguments(`count_over_time(up[1m]) > 3`).WithTimeout(3*time.Minute).Should(HaveLen(3),
		"every target was scraped a few times")
	for file, shown := range all {
		t.Run(file, func(t *testing.T) { checkSeries(t, shown, query) })
	}
	t.Run("a cluster that is installed without a problem needs no attention", func(t *testing.T) {
		g := NewWithT(t)
		installing, err := query(`count by (cluster_name) (capi_openshiftassistedcontrolplane_status_installation_phase{phase="Installing"})`)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(installing).To(HaveLen(1))
		listed, err := query(forGrafana.Replace(queryOf(t, all[fleet], clustersNeedAttention)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(listed).NotTo(ContainElement(HaveField("Metric", HaveKeyWithValue("cluster_name", installing[0].Metric["cluster_name"]))))
		g.Expect(listed).To(ContainElement(HaveField("Metric", HaveKeyWithValue("reason", "InstallationFailed"))))
	})
}

// checkSeries checks that each variable has values, and that each query has a result with the labels of its legend.
func checkSeries(t *testing.T, shown dashboard, query func(expression string) ([]sample, error)) {
	t.Helper()
	g := NewWithT(t)
	for _, variable := range shown.Templating.List {
		if variable.Type != "query" {
			continue
		}
		g.Expect(variable.Query).To(HaveKeyWithValue("query", variable.Definition))
		values := ofValues.FindStringSubmatch(variable.Definition)
		g.Expect(values).To(HaveLen(3), variable.Name)
		g.Expect(query(fmt.Sprintf("count by (%s) (%s)", values[2], forGrafana.Replace(values[1])))).To(ContainElement(HaveField("Metric",
			HaveKey(values[2]))), variable.Name)
	}
	ids := map[int]bool{}
	for _, panel := range shown.Panels {
		g.Expect(ids).NotTo(HaveKey(panel.ID), panel.Title)
		ids[panel.ID] = true
		if panel.Type != "row" {
			g.Expect(panel.Targets).NotTo(BeEmpty(), panel.Title)
		}
		for _, target := range panel.Targets {
			t.Run(panel.Title, func(t *testing.T) {
				g := NewWithT(t)
				g.Eventually(query).WithArguments(forGrafana.Replace(target.Expr)).WithTimeout(2*time.Minute).Should(ContainElement(HaveField("Value",
					HaveExactElements(Not(BeNil()), Not(Equal("NaN"))))), "a value is shown")
				result, err := query(forGrafana.Replace(target.Expr))
				g.Expect(err).NotTo(HaveOccurred())
				for _, label := range labelsOf(target.Expr, target.LegendFormat) {
					g.Expect(result).To(HaveEach(HaveField("Metric", HaveKeyWithValue(label, Not(BeEmpty())))),
						"the labels of the grouping and of the legend exist")
				}
			})
		}
	}
}

// labelsOf returns the labels in the grouping of a query and in its legend.
func labelsOf(expression, legend string) []string {
	var labels []string
	for _, found := range grouping.FindAllStringSubmatch(expression, -1) {
		for _, label := range strings.Split(found[1], ", ") {
			if label != "le" { // histogram_quantile removes it
				labels = append(labels, label)
			}
		}
	}
	for _, found := range inLegend.FindAllStringSubmatch(legend, -1) {
		labels = append(labels, found[1])
	}
	return labels
}

// startPrometheus runs a Prometheus that scrapes two managers and kube-state-metrics, and returns a function
// that queries it.
func startPrometheus(t *testing.T) (query func(expression string) ([]sample, error)) {
	t.Helper()
	g := NewWithT(t)
	program, missing := tools.Prometheus()
	g.Expect(missing).NotTo(HaveOccurred())
	targets := httptest.NewServer(exposed(t))
	t.Cleanup(targets.Close)
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yaml")
	g.Expect(os.WriteFile(config, []byte(scrapes(strings.TrimPrefix(targets.URL, "http://"))), 0o600)).To(Succeed())
	group, err := process.NewGroup(dir, os.Stderr)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(group.Stop)
	port, err := group.Port()
	g.Expect(err).NotTo(HaveOccurred())
	address := fmt.Sprintf("127.0.0.1:%d", port)
	prometheus := group.New("prometheus", process.Clients, program, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	prometheus.Ready = process.Probe(http.DefaultClient, "http://"+address+"/-/ready")
	g.Expect(group.Start(t.Context(), prometheus)).To(Succeed())
	return func(expression string) ([]sample, error) {
		return queryPrometheus(t.Context(), "http://"+address, expression)
	}
}

// scrapes returns the configuration of Prometheus, with the labels that PodMonitors add.
func scrapes(address string) string {
	lines := []string{"global: {scrape_interval: 500ms, scrape_timeout: 500ms}", "scrape_configs:"}
	for _, job := range []struct{ name, path, labels string }{
		{"bootstrap-openshift-agent", "/manager", "{namespace: openshift-agent-bootstrap-system, pod: b}"},
		{"control-plane-openshift-agent", "/manager", "{namespace: openshift-agent-control-plane-system, pod: c}"},
		{"kube-state-metrics", "/state", "{namespace: monitoring, pod: k}"},
	} {
		lines = append(lines, fmt.Sprintf("- {job_name: %s, metrics_path: %s, honor_labels: true, static_configs: [{targets: [%q], labels: "+
			"%s}]}", job.name, job.path, address, job.labels))
	}
	return strings.Join(lines, "\n")
}

// exposed serves the metrics of managers at work, and the metrics of kube-state-metrics for recorded objects.
func exposed(t *testing.T) http.Handler {
	t.Helper()
	act := activity(t)
	state := stateMetrics(t, "OpenshiftAssistedControlPlane-Progressing-Installing",
		"OpenshiftAssistedControlPlane-Degraded-InstallationFailed", "OpenshiftAssistedConfig-Degraded-HostInstallationFailed", installingHost)
	state = attemptTime.ReplaceAllString(state, fmt.Sprintf("$1 %d", time.Now().Unix())) // the recorded installation has just begun
	mux := http.NewServeMux()
	mux.Handle("/manager", promhttp.InstrumentMetricHandler(metrics.Registry, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		act()
		promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})))
	mux.HandleFunc("/state", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(state))
	})
	return mux
}

// activity returns a function that runs before each scrape. It records our own metrics, reconciles (some of
// which fail) and requests to an API server.
func activity(t *testing.T) func() {
	t.Helper()
	g := NewWithT(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) }))
	t.Cleanup(api.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: api.URL})
	g.Expect(err).NotTo(HaveOccurred())
	requests := make(chan ctrl.Request, 100)
	for _, name := range []string{"openshiftassistedconfig", "openshiftassistedcontrolplane"} {
		runController(t, name, requests)
	}
	broken := []metav1.Condition{{Reason: "HostRefused"}}
	return func() {
		measure.CountProblems("OpenshiftAssistedConfig", nil, broken)
		measure.Installation([]measure.Stage{{Name: "Installed", Took: 40 * time.Minute}})
		measure.Host([]measure.Stage{{Name: "total", Took: 30 * time.Minute}})
		measure.Reactions([]measure.Reaction{{To: measure.ImageReady, Took: time.Second}})
		measure.RegistryRequest(lookup.Found, time.Second)
		_, _ = client.ServerVersion()
		for range 4 {
			select {
			case requests <- ctrl.Request{}:
			default:
			}
		}
	}
}

// arriving returns a source of reconcile requests.
func arriving(requests <-chan ctrl.Request) source.Func {
	return func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go func() {
			for {
				select {
				case request := <-requests:
					queue.Add(request)
				case <-ctx.Done():
					return
				}
			}
		}()
		return nil
	}
}

// runController runs a controller until the test ends. Each second reconcile fails.
func runController(t *testing.T, name string, requests <-chan ctrl.Request) {
	t.Helper()
	g := NewWithT(t)
	fails := false
	c, err := controller.NewUnmanaged(name, controller.Options{
		SkipNameValidation: ptr.To(true),
		Reconciler: reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			if fails = !fails; fails {
				return ctrl.Result{}, errors.New("it happens")
			}
			return ctrl.Result{}, nil
		}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Watch(arriving(requests))).To(Succeed())
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_ = c.Start(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// query runs a query at the current time.
func queryPrometheus(ctx context.Context, address, query string) ([]sample, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/api/v1/query?query="+url.QueryEscape(query), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []sample `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, answer.Error)
	}
	return answer.Data.Result, nil
}
