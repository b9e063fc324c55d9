// Package measure has the metrics of both providers beside those of controller-runtime. How things are at the moment,
// such as how many clusters are being installed, is not among them: kube-state-metrics tells it from our objects
// (config/monitoring).
package measure

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// namespace is what the names begin with: that of Cluster API's metrics, and ours.
const namespace = "capi_openshift_agent"

// minutes are the bounds of what takes as long as servers take to boot and to be installed.
var minutes = []float64{60, 120, 300, 600, 900, 1200, 1800, 2400, 3000, 3600, 4500, 5400, 7200, 10800, 14400, 28800}

// seconds are the bounds of what a manager does at once, or after something that it had to wait for: the times in
// objects are of full seconds.
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
}

// Problems counts those that began with a change of an object's conditions.
func Problems(kind string, before, after []metav1.Condition, isProblem func(*metav1.Condition) bool) {
	for _, reason := range Begun(before, after, isProblem) {
		problems.WithLabelValues(kind, reason).Inc()
	}
}

// Begun are the reasons of problems that some condition has now, and none had before. A status that was written is
// compared with the one that it replaced: hence each problem begins once, whoever reconciles how often.
func Begun(before, after []metav1.Condition, isProblem func(*metav1.Condition) bool) []string {
	was := reasons(before, isProblem)
	return slices.DeleteFunc(reasons(after, isProblem), func(reason string) bool { return slices.Contains(was, reason) })
}

func reasons(conditions []metav1.Condition, isProblem func(*metav1.Condition) bool) []string {
	var found []string
	for i := range conditions {
		if isProblem(&conditions[i]) {
			found = append(found, conditions[i].Reason)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Stage is a part of an installation, and how long it took.
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

// RegistryRequest observes a question to a registry.
func RegistryRequest(result string, took time.Duration) {
	registries.WithLabelValues(result).Observe(took.Seconds())
}

// ReleaseLookup counts a look-up of a release image in its mirrors and in its own registry: result is that of all of them together.
func ReleaseLookup(result string) { lookups.WithLabelValues(result).Inc() }

// Handover is something that somebody else has done, and upon which a manager acts.
type Handover string

// The hand-overs whose time the objects tell, by what is done then.
const (
	// ImageReady is the discovery image of a host, upon which the host may be started.
	ImageReady Handover = "image_ready"
	// AgentRegistered is the Agent of a host, which is then proven to be a Machine's.
	AgentRegistered Handover = "agent_registered"
	// ClusterAcceptsHosts is the end of an installation, upon which hosts that waited for it are bound.
	ClusterAcceptsHosts Handover = "cluster_accepts_hosts"
	// KubeconfigWritten is assisted-service's kubeconfig, which is then published.
	KubeconfigWritten Handover = "kubeconfig_written"
	// ClusterInstalled is the end of an installation, which is then told to Cluster API.
	ClusterInstalled Handover = "cluster_installed"
)

// Reaction is how long it took until a manager had acted upon a hand-over.
type Reaction struct {
	To   Handover
	Took time.Duration
}

// ReactionTo is the reaction at a time to what was handed over at another; of what nobody dates, and of clocks that differ, there is none.
func ReactionTo(handover Handover, since *metav1.Time, now time.Time) []Reaction {
	if since.IsZero() || now.Before(since.Time) {
		return nil
	}
	return []Reaction{{To: handover, Took: now.Sub(since.Time)}}
}

// Reactions observes reactions.
func Reactions(those []Reaction) {
	for _, reaction := range those {
		reactions.WithLabelValues(string(reaction.To)).Observe(reaction.Took.Seconds())
	}
}
