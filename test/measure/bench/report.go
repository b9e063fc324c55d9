package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// slowest is the number of named slowest reactions.
const slowest = 3

// report is the content of the JSON file. Reaction times are in milliseconds, memory in MiB.
type report struct {
	Sample             string                    `json:"sampleAtOnce"`
	Clusters           int                       `json:"numberAtOnce"`
	Installed          int                       `json:"installedInAddition"`
	StageDelaySeconds  float64                   `json:"stageDelaySecondsAtOnce"`
	Reactions          map[string]reactionReport `json:"reactions"`
	Phases             []phaseReport             `json:"phases"`
	AtOnce             atOnceReport              `json:"requestsAtOnce"`
	Managers           map[string]*managerReport `json:"managers"`
	Registry           registryReport            `json:"registryLookups"`
	SecondsToAvailable oneAndMany                `json:"secondsToAvailable"`
	Machine            machineReport             `json:"machine"`
	// Unexplained are acts without a seen cause, Unanswered are causes without a seen act, and Unseen are hand-overs
	// that were never seen. They are in no figure.
	Unexplained []string        `json:"unexplained"`
	Unanswered  []string        `json:"unanswered"`
	Unseen      []string        `json:"unseen"`
	Targets     results.Targets `json:"targets"`
}

// reactionReport has the figures of a hand-over.
type reactionReport struct {
	One  statistics `json:"oneCluster"`
	Many statistics `json:"clustersAtOnce"`
}

// of returns the figures of a part.
func (r reactionReport) of(part string) statistics {
	if part == partMany {
		return r.Many
	}
	return r.One
}

// statistics of reaction times; zero without reactions.
type statistics struct {
	results.Quantiles
	Slowest []string `json:"slowest,omitempty"`
}

// phaseReport is a phase of a cluster's life, and the cost of each run without another cluster on the hub.
type phaseReport struct {
	Name string     `json:"name"`
	Runs []phaseRun `json:"runs"`
}

// phaseRun has the requests of the managers to the hub and to the cluster from the begin of the phase until they were
// silent. Seconds end when the phase is complete.
type phaseRun struct {
	Cluster  string                  `json:"cluster"`
	Machines int                     `json:"machines"`
	Seconds  float64                 `json:"seconds"`
	Managers map[string]requestCount `json:"managers"`
	Site     requestCount            `json:"site"`
}

// hub counts the requests of both managers to the hub.
func (r phaseRun) hub() int {
	sum := 0
	for _, requests := range r.Managers {
		sum += requests.Total
	}
	return sum
}

// worst returns the run with the most requests relative to its target.
func (p phaseReport) worst() phaseRun {
	beyond := func(r phaseRun) float64 { return float64(r.hub()) - requestTargets[p.Name].atHub(r.Machines) }
	return slices.MaxFunc(p.Runs, func(a, b phaseRun) int { return cmp.Compare(beyond(a), beyond(b)) })
}

// mostAtSite returns the largest number of requests to the cluster.
func (p phaseReport) mostAtSite() int {
	most := 0
	for _, r := range p.Runs {
		most = max(most, r.Site.Total)
	}
	return most
}

// seconds returns the sorted durations.
func (p phaseReport) seconds() []float64 {
	var all []float64
	for _, r := range p.Runs {
		all = append(all, r.Seconds)
	}
	return slices.Sorted(slices.Values(all))
}

// atOnceReport has the requests of both managers to the hub for all clusters at once, and the sorted numbers of requests
// to each cluster.
type atOnceReport struct {
	Machines int   `json:"machinesOfEach"`
	Hub      int   `json:"hub"`
	Sites    []int `json:"sites"`
}

// each returns the mean of the requests to the hub for a cluster.
func (r atOnceReport) each() float64 {
	return results.Round(float64(r.Hub) / float64(max(1, len(r.Sites))))
}

// managerReport has the figures of a manager. Its peak memory is the peak since its start.
type managerReport struct {
	StartCPUSeconds float64    `json:"startCPUSeconds"`
	One             costReport `json:"oneCluster"`
	Many            costReport `json:"clustersAtOnce"`
	// Floor are the figures of a program that only watches, during the installation of one cluster.
	Floor costReport `json:"floorOfOneCluster"`
}

type costReport struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakMiB    float64 `json:"peakMemoryMiB"`
	// AnonymousMiB is the memory at the end without the pages of the program file.
	AnonymousMiB float64 `json:"anonymousMemoryMiB"`
}

// requestCount counts requests. Total and By are the requests for work. Watches (with their first lists), leases and
// discovery are counted separately.
type requestCount struct {
	Total     int            `json:"total"`
	By        map[string]int `json:"by"`
	Watches   int            `json:"watches"`
	Leases    int            `json:"leases"`
	Discovery int            `json:"discovery"`
}

// registryReport counts the manifests that were read from the registry. The clusters at once have one version.
type registryReport struct {
	ByVersion     int `json:"byVersion"`
	ByDigest      int `json:"byDigest"`
	ManyByVersion int `json:"clustersAtOnceByVersion"`
}

type oneAndMany struct {
	One  float64 `json:"oneCluster"`
	Many float64 `json:"clustersAtOnce"`
}

func newReport(o options) *report {
	return &report{
		Sample: o.Sample, Clusters: o.Clusters, Installed: o.installed, StageDelaySeconds: results.Seconds(o.delay), Machine: newMachineReport(),
		Reactions: map[string]reactionReport{}, Managers: map[string]*managerReport{},
		Unexplained: []string{}, Unanswered: []string{}, Unseen: []string{},
	}
}

func (r *report) manager(name string) *managerReport {
	if r.Managers[name] == nil {
		r.Managers[name] = &managerReport{}
	}
	return r.Managers[name]
}

// addRun adds a run of a phase.
func (r *report) addRun(name string, run phaseRun) {
	i := slices.IndexFunc(r.Phases, func(p phaseReport) bool { return p.Name == name })
	if i < 0 {
		i = len(r.Phases)
		r.Phases = append(r.Phases, phaseReport{Name: name})
	}
	r.Phases[i].Runs = append(r.Phases[i].Runs, run)
	slices.SortStableFunc(r.Phases, func(a, b phaseReport) int { return slices.Index(phases, a.Name) - slices.Index(phases, b.Name) })
}

// addReactions adds the figures of a part, and the expected hand-overs that were not seen.
func (r *report) addReactions(part string, expected []string, measured map[string][]reaction, without unmatched) {
	for _, handOver := range slices.Concat(references, handOvers, byOthers) {
		f := r.Reactions[handOver]
		if part == partMany {
			f.Many = summarize(measured[handOver])
		} else {
			f.One = summarize(measured[handOver])
		}
		r.Reactions[handOver] = f
	}
	for _, handOver := range slices.Concat(references, expected) {
		if len(measured[handOver]) == 0 {
			r.Unseen = append(r.Unseen, partNames[part]+": "+handOver)
		}
	}
	r.Unexplained = append(r.Unexplained, subjects(part, without.unexplained)...)
	r.Unanswered = append(r.Unanswered, subjects(part, without.unanswered)...)
}

// subjects returns the hand-overs and subjects of acts.
func subjects(part string, effects []effect) []string {
	var names []string
	for _, e := range effects {
		names = append(names, partNames[part]+": "+e.handOver+": "+e.subject)
	}
	return slices.Sorted(slices.Values(names))
}

// installationRequests returns the requests of each manager to the hub for the installation of one cluster, of the first
// run. Later runs have one more worker.
func (r *report) installationRequests() map[string]int {
	requests := map[string]int{}
	for _, p := range r.Phases {
		if p.Name != installation {
			continue
		}
		for name, count := range p.Runs[0].Managers {
			requests[name] = count.Total
		}
	}
	return requests
}

// oneInstallation returns the CPU time of both managers for the installation of one cluster, in seconds.
func (r *report) oneInstallation() float64 {
	sum := 0.0
	for _, m := range r.Managers {
		sum += m.One.CPUSeconds
	}
	return results.Round2(sum)
}

// perCluster returns the CPU time of both managers for each of the clusters at once, in seconds.
func (r *report) perCluster() float64 {
	sum := 0.0
	for _, m := range r.Managers {
		sum += m.Many.CPUSeconds
	}
	return results.Round2(sum / float64(max(r.Clusters, 1)))
}

// hourly returns the number of clusters in an hour at the pace of the clusters at once.
func (r *report) hourly() float64 {
	return math.Round(float64(r.Clusters) * time.Hour.Seconds() / max(r.SecondsToAvailable.Many, 1))
}

// summarize computes the statistics of reactions.
func summarize(reactions []reaction) statistics {
	sorted := slices.SortedFunc(slices.Values(reactions), func(a, b reaction) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.subject, b.subject))
	})
	times := make([]time.Duration, 0, len(sorted))
	for _, r := range sorted {
		times = append(times, r.took)
	}
	s := statistics{Quantiles: results.QuantilesOf(times)}
	for _, r := range slices.Backward(sorted[max(0, len(sorted)-slowest):]) {
		s.Slowest = append(s.Slowest, fmt.Sprintf("%s: %.1f ms after %q", r.subject, results.Milliseconds(r.took), r.decisive.what))
	}
	return s
}

// cost returns the resources that a manager used between two samples.
func cost(before, after process.Usage) costReport {
	return costReport{
		CPUSeconds: results.Seconds(after.CPU - before.CPU), PeakMiB: results.Mebibytes(after.PeakMemory),
		AnonymousMiB: results.Mebibytes(after.Anonymous),
	}
}
