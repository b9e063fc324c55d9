package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// slowest is how many of the slowest reactions are named.
const slowest = 3

// report is what is written as JSON. Times of reactions are milliseconds, memory is MiB.
type report struct {
	Sample             string                    `json:"sampleAtOnce"`
	Clusters           int                       `json:"numberAtOnce"`
	Installed          int                       `json:"installedBeside"`
	StageDelaySeconds  float64                   `json:"stageDelaySecondsAtOnce"`
	Reactions          map[string]reactionReport `json:"reactions"`
	Phases             []phaseReport             `json:"phases"`
	AtOnce             atOnceReport              `json:"requestsAtOnce"`
	Managers           map[string]*managerReport `json:"managers"`
	Registry           registryReport            `json:"registryLookups"`
	SecondsToAvailable oneAndMany                `json:"secondsToAvailable"`
	Machine            machineReport             `json:"machine"`
	// Unexplained are acts whose causes were not seen, Unanswered are causes after which no act was seen, Unseen are
	// hand-overs of which no act was: they are in no figure.
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

// of is the part of a run.
func (r reactionReport) of(part string) statistics {
	if part == partMany {
		return r.Many
	}
	return r.One
}

// statistics of reaction times; all zero when there are none.
type statistics struct {
	results.Quantiles
	Slowest []string `json:"slowest,omitempty"`
}

// phaseReport is a phase of a cluster's life, and what it cost each time that it was played with no other cluster on the hub.
type phaseReport struct {
	Name string     `json:"name"`
	Runs []phaseRun `json:"runs"`
}

// phaseRun has the requests of the managers to the hub, and those to the cluster, from the beginning of the phase until
// they were silent. The seconds end when it is done.
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
	for _, asked := range r.Managers {
		sum += asked.Total
	}
	return sum
}

// worst is the run that is farthest beyond its target, or next to it.
func (p phaseReport) worst() phaseRun {
	beyond := func(r phaseRun) float64 { return float64(r.hub()) - requestTargets[p.Name].atHub(r.Machines) }
	return slices.MaxFunc(p.Runs, func(a, b phaseRun) int { return cmp.Compare(beyond(a), beyond(b)) })
}

// mostAtSite is the largest number of requests to a cluster.
func (p phaseReport) mostAtSite() int {
	most := 0
	for _, r := range p.Runs {
		most = max(most, r.Site.Total)
	}
	return most
}

// seconds are sorted.
func (p phaseReport) seconds() []float64 {
	var all []float64
	for _, r := range p.Runs {
		all = append(all, r.Seconds)
	}
	return slices.Sorted(slices.Values(all))
}

// atOnceReport has the requests of both managers to the hub for all clusters at once, and those to each of the clusters, sorted.
type atOnceReport struct {
	Machines int   `json:"machinesOfEach"`
	Hub      int   `json:"hub"`
	Sites    []int `json:"sites"`
}

// each is the mean of the requests to the hub.
func (r atOnceReport) each() float64 {
	return results.Round(float64(r.Hub) / float64(max(1, len(r.Sites))))
}

// managerReport has the figures of a manager. Peak memory is that of its whole life so far.
type managerReport struct {
	StartCPUSeconds float64    `json:"startCPUSeconds"`
	One             costReport `json:"oneCluster"`
	Many            costReport `json:"clustersAtOnce"`
}

type costReport struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakMiB    float64 `json:"peakMemoryMiB"`
	// AnonymousMiB is, at the end, what is not pages of the program file.
	AnonymousMiB float64 `json:"anonymousMemoryMiB"`
}

// requestCount counts requests. Total and By are those that work causes; watches (with the lists that begin them), leases and discovery are
// apart.
type requestCount struct {
	Total     int            `json:"total"`
	By        map[string]int `json:"by"`
	Watches   int            `json:"watches"`
	Leases    int            `json:"leases"`
	Discovery int            `json:"discovery"`
}

// registryReport counts the manifests that the registry was asked for: by one cluster with a version, by all those with
// a digest, and by the clusters at once, which have the same version.
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
		Sample: o.sample, Clusters: o.clusters, Installed: o.installed, StageDelaySeconds: seconds(o.delay), Machine: newMachineReport(),
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

// addRun adds what a phase cost once.
func (r *report) addRun(name string, run phaseRun) {
	i := slices.IndexFunc(r.Phases, func(p phaseReport) bool { return p.Name == name })
	if i < 0 {
		i = len(r.Phases)
		r.Phases = append(r.Phases, phaseReport{Name: name})
	}
	r.Phases[i].Runs = append(r.Phases[i].Runs, run)
	slices.SortStableFunc(r.Phases, func(a, b phaseReport) int { return slices.Index(phases, a.Name) - slices.Index(phases, b.Name) })
}

// addReactions adds the figures of a part, and which of the hand-overs that it must show it does not.
func (r *report) addReactions(part string, expected []string, measured map[string][]reaction, without unmatched) {
	for _, handOver := range slices.Concat(references, handOvers, byOthers) {
		f := r.Reactions[handOver]
		if part == partMany {
			f.Many = summarise(measured[handOver])
		} else {
			f.One = summarise(measured[handOver])
		}
		r.Reactions[handOver] = f
	}
	for _, handOver := range slices.Concat(references, expected) {
		if len(measured[handOver]) == 0 {
			r.Unseen = append(r.Unseen, partNames[part]+": "+handOver)
		}
	}
	r.Unexplained = append(r.Unexplained, told(part, without.unexplained)...)
	r.Unanswered = append(r.Unanswered, told(part, without.unanswered)...)
}

// told names acts.
func told(part string, effects []effect) []string {
	var names []string
	for _, e := range effects {
		names = append(names, partNames[part]+": "+e.handOver+": "+e.subject)
	}
	return slices.Sorted(slices.Values(names))
}

// perCluster is the CPU time of both managers for each of the clusters at once, in seconds.
func (r *report) perCluster() float64 {
	sum := 0.0
	for _, m := range r.Managers {
		sum += m.Many.CPUSeconds
	}
	return math.Round(100*sum/float64(max(r.Clusters, 1))) / 100
}

// hourly is how many clusters were installed in an hour, by the time that those at once took.
func (r *report) hourly() float64 {
	return math.Round(float64(r.Clusters) * time.Hour.Seconds() / max(r.SecondsToAvailable.Many, 1))
}

// summarise computes the statistics of reactions.
func summarise(reactions []reaction) statistics {
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

// cost is what a manager has used between two looks at it.
func cost(before, after process.Usage) costReport {
	return costReport{
		CPUSeconds: seconds(after.CPU - before.CPU), PeakMiB: mebibytes(after.PeakMemory),
		AnonymousMiB: mebibytes(after.Anonymous),
	}
}

func mebibytes(bytes int64) float64 { return results.Round(float64(bytes) / (1 << 20)) }

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

// write writes the report as JSON.
func (r *report) write(path string) error { return results.Write(path, r) }
