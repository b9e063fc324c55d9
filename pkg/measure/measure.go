// Package measure holds the metrics of both providers in addition to those of controller-runtime. Current
// states, such as the number of clusters that are being installed, are not included: kube-state-metrics
// derives them from our objects (config/monitoring).
package measure

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/lookup"
)

// namespace is the prefix of the metrics: that of Cluster API's metrics, and the name of the providers.
const namespace = "capi_openshift_agent"

// minutes are the buckets of durations of booting and installing servers.
var minutes = []float64{60, 120, 300, 600, 900, 1200, 1800, 2400, 3000, 3600, 4500, 5400, 7200, 10800, 14400, 28800}

// seconds are the buckets of reactions of a manager, immediate ones and those after a wait. The times in
// objects have a resolution of one second.
var seconds = []float64{1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800}

var (
	problems = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "problems_total",
		Help: "Number of new conditions that need an action of the user, by reason.",
	}, []string{"kind", "reason"})

	installations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "installation_duration_seconds", Buckets: minutes,
		Help: "Time from the creation of a control plane until its installation reached a stage.",
	}, []string{"stage"})

	hosts = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "host_stage_duration_seconds", Buckets: minutes,
		Help: "Duration of the stages of an installed host.",
	}, []string{"stage"})

	reactions = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "reaction_duration_seconds", Buckets: seconds,
		Help: "Time from an input becoming ready until the manager acted on it, by input.",
	}, []string{"handover"})

	registries = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "registry_request_duration_seconds",
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10},
		Help:    "Duration of requests to registries for the digest of a release image, including failed requests.",
	}, []string{"result"})

	lookups = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "release_lookups_total",
		Help: "Look-ups of release images in all their registries, by their result.",
	}, []string{"result"})
)

func init() {
	metrics.Registry.MustRegister(problems, installations, hosts, reactions, registries, lookups)
	// increase() does not count the first sample of a series: each series exists from the start of the manager.
	for _, result := range lookup.Results {
		lookups.WithLabelValues(string(result))
	}
}

// CountProblems counts the problems that began with a change of an object. before and after are its conditions that report
// a problem.
func CountProblems(kind string, before, after []metav1.Condition) {
	for _, reason := range NewProblems(before, after) {
		problems.WithLabelValues(kind, reason).Inc()
	}
}

// NewProblems returns the reasons that a problem has now and no problem had before. The
// written status is compared with the replaced one, so that each problem begins once, however often the
// object is reconciled.
func NewProblems(before, after []metav1.Condition) []string {
	was := reasons(before)
	return slices.DeleteFunc(reasons(after), func(reason string) bool { return slices.Contains(was, reason) })
}

func reasons(problems []metav1.Condition) []string {
	var found []string
	for i := range problems {
		found = append(found, problems[i].Reason)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Stage is a stage of an installation and its duration.
type Stage struct {
	Name string
	Took time.Duration
}

// Installation observes stages that the installation of a cluster has reached.
func Installation(stages []Stage) { observe(installations, stages) }

// Host observes the stages of a host that was installed.
func Host(stages []Stage) { observe(hosts, stages) }

func observe(histogram *prometheus.HistogramVec, stages []Stage) {
	for _, stage := range stages {
		histogram.WithLabelValues(stage.Name).Observe(stage.Took.Seconds())
	}
}

// RegistryRequest observes a request to a registry.
func RegistryRequest(result lookup.Result, took time.Duration) {
	registries.WithLabelValues(string(result)).Observe(took.Seconds())
}

// ReleaseLookup counts a look-up of a release image, with the common result of its mirrors and its own
// registry.
func ReleaseLookup(result lookup.Result) { lookups.WithLabelValues(string(result)).Inc() }

// Handover is an input that another component has made ready, and on which a manager acts.
type Handover string

// The hand-overs whose time the objects record.
const (
	// ImageReady is the discovery image of a host. The manager then releases the host to boot.
	ImageReady Handover = "image_ready"
	// AgentRegistered is the Agent of a host. The manager then proves that it belongs to a Machine.
	AgentRegistered Handover = "agent_registered"
	// ClusterAcceptsHosts is the end of an installation. The manager then binds the waiting hosts.
	ClusterAcceptsHosts Handover = "cluster_accepts_hosts"
	// KubeconfigWritten is the kubeconfig of assisted-service. The manager then publishes it.
	KubeconfigWritten Handover = "kubeconfig_written"
	// ClusterInstalled is the end of an installation. The manager then reports it to Cluster API.
	ClusterInstalled Handover = "cluster_installed"
)

// Reaction is the time that a manager took to act on an input.
type Reaction struct {
	To   Handover
	Took time.Duration
}

// ReactionTo returns the reaction at now to an input that was ready at since. It returns none if since is
// unknown, or in the future because clocks differ.
func ReactionTo(handover Handover, since *metav1.Time, now time.Time) []Reaction {
	if since.IsZero() || now.Before(since.Time) {
		return nil
	}
	return []Reaction{{To: handover, Took: now.Sub(since.Time)}}
}

// Reactions observes reactions.
func Reactions(observed []Reaction) {
	for _, reaction := range observed {
		reactions.WithLabelValues(string(reaction.To)).Observe(reaction.Took.Seconds())
	}
}
