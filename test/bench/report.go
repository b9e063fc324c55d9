package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/process"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// What is to be reached.
const (
	// Of a hundred reactions the slowest takes at most so many times what its writes take until they are seen, or so long where processors are free.
	reactionFactor, freeReaction = 2, 250 * time.Millisecond
	targetRequests               = 120 // both managers, one HA cluster, from apply to Available
	targetIdle                   = 0
	targetMemory                 = 60 // MiB, each manager
	targetLookups                = 1  // for each release that is given by version

	// targetHour is how many single-node clusters are to be installed in an hour on two processors, of which both managers together may have one half: the other
	// one is for the API server, etcd, assisted-service and the other controllers.
	targetHour, hubProcessors, managersShare = 5000, 2, 0.5
)

// successive are the hand-overs of more than one write, of which each may begin only after the one before has succeeded. The infrastructure provider goes on with the
// bootstrap data: its name is told when the boot image is in place. An Agent is told first that nobody needs to clean up behind it, when the whole cluster goes, and what
// was removed from etcd is recorded before its host is released.
var successive = map[string]int{bootDataHandedOut: 2, agentReleased: 2, memberRemoved: 2}

// slowest is how many of the slowest reactions are named.
const slowest = 3

// report is what is written as JSON. Times of reactions are milliseconds, memory is MiB.
type report struct {
	Sample             string                    `json:"sampleAtOnce"`
	Clusters           int                       `json:"numberAtOnce"`
	Installed          int                       `json:"installedBeside"`
	StageDelaySeconds  float64                   `json:"stageDelaySecondsAtOnce"`
	Reactions          map[string]reactionReport `json:"reactions"`
	Requests           totals                    `json:"requests"`
	Managers           map[string]*managerReport `json:"managers"`
	Registry           registryReport            `json:"registryLookups"`
	SecondsToAvailable oneAndMany                `json:"secondsToAvailable"`
	Machine            machineReport             `json:"machine"`
	// Unexplained are acts whose causes were not seen; they are in no figure.
	Unexplained []string `json:"unexplained"`
}

// reactionReport has the figures of a hand-over.
type reactionReport struct {
	One  statistics `json:"oneCluster"`
	Many statistics `json:"clustersAtOnce"`
}

// statistics of reaction times; all zero when there are none.
type statistics struct {
	Count   int      `json:"count"`
	Median  float64  `json:"medianMilliseconds"`
	P99     float64  `json:"p99Milliseconds"`
	Max     float64  `json:"maxMilliseconds"`
	Slowest []string `json:"slowest,omitempty"`
}

// totals of both managers.
type totals struct {
	TargetInstallation int `json:"targetInstallation"`
	Installation       int `json:"installation"`
	Afterwards         int `json:"afterAvailable"`
	TargetIdle         int `json:"targetIdle"`
	Idle               int `json:"idle"`
}

// managerReport has the figures of a manager. Peak memory is that of its whole life so far.
type managerReport struct {
	StartCPUSeconds float64       `json:"startCPUSeconds"`
	TargetMiB       float64       `json:"targetPeakMemoryMiB"`
	One             costReport    `json:"oneCluster"`
	Many            costReport    `json:"clustersAtOnce"`
	Requests        requestCounts `json:"requests"`
}

type costReport struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	PeakMiB    float64 `json:"peakMemoryMiB"`
	// AnonymousMiB is, at the end, what is not pages of the program file.
	AnonymousMiB float64 `json:"anonymousMemoryMiB"`
}

// requestCounts are the requests of a manager: until the cluster is applied, from then to Available, until it is silent, in the idle time.
type requestCounts struct {
	Start        requestCount `json:"start"`
	Installation requestCount `json:"installation"`
	Afterwards   requestCount `json:"afterAvailable"`
	Idle         requestCount `json:"idle"`
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

// registryReport counts the manifests that the registry was asked for: by one cluster with a version, by all those with a digest, and by the
// clusters at once, which have the same version.
type registryReport struct {
	TargetByVersion int `json:"targetByVersion"`
	ByVersion       int `json:"byVersion"`
	TargetByDigest  int `json:"targetByDigest"`
	ByDigest        int `json:"byDigest"`
	ManyByVersion   int `json:"clustersAtOnceByVersion"`
}

type oneAndMany struct {
	One  float64 `json:"oneCluster"`
	Many float64 `json:"clustersAtOnce"`
}

func newReport(o options) *report {
	return &report{
		Sample: o.sample, Clusters: o.clusters, Installed: o.installed, StageDelaySeconds: seconds(o.delay), Machine: newMachineReport(),
		Reactions: map[string]reactionReport{}, Managers: map[string]*managerReport{}, Unexplained: []string{},
		Registry: registryReport{TargetByVersion: targetLookups},
	}
}

func (r *report) manager(name string) *managerReport {
	if r.Managers[name] == nil {
		r.Managers[name] = &managerReport{TargetMiB: targetMemory}
	}
	return r.Managers[name]
}

// addReactions adds the figures of a part; into selects where.
func (r *report) addReactions(measured map[string][]reaction, unexplained []effect, into func(*reactionReport) *statistics) {
	for _, handOver := range slices.Concat(references, handOvers, byOthers) {
		f := r.Reactions[handOver]
		*into(&f) = summarise(measured[handOver])
		r.Reactions[handOver] = f
	}
	for _, e := range unexplained {
		r.Unexplained = append(r.Unexplained, e.handOver+": "+e.subject)
	}
	slices.Sort(r.Unexplained)
}

// reactionTarget is what the slowest of a hundred reactions may take; into selects the part of the run.
func (r *report) reactionTarget(handOver string, into func(*reactionReport) *statistics) float64 {
	written := reference
	if toAgents[handOver] {
		written = agentReference
	}
	f := r.Reactions[written]
	return max(milliseconds(freeReaction), reactionFactor*into(&f).P99*float64(max(1, successive[handOver])))
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

// affordable is for how many clusters in an hour the share of the managers is enough.
func (r *report) affordable() float64 {
	return math.Round(time.Hour.Seconds() * hubProcessors * managersShare / max(r.perCluster(), 0.01))
}

// missed tells whether the clusters that were installed at once missed a target.
func (r *report) missed() bool {
	if r.Clusters == 0 {
		return false
	}
	many := func(f *reactionReport) *statistics { return &f.Many }
	for _, handOver := range handOvers {
		if r.Reactions[handOver].Many.P99 > r.reactionTarget(handOver, many) {
			return true
		}
	}
	return r.Sample == singleNode && r.affordable() < targetHour
}

// summarise computes the statistics of reactions.
func summarise(reactions []reaction) statistics {
	if len(reactions) == 0 {
		return statistics{}
	}
	sorted := slices.SortedFunc(slices.Values(reactions), func(a, b reaction) int {
		return cmp.Or(cmp.Compare(a.took, b.took), cmp.Compare(a.subject, b.subject))
	})
	n := len(sorted)
	median := (sorted[(n-1)/2].took + sorted[n/2].took) / 2
	slow := sorted[int(math.Ceil(0.99*float64(n)))-1].took
	s := statistics{Count: n, Median: milliseconds(median), P99: milliseconds(slow), Max: milliseconds(sorted[n-1].took)}
	for _, r := range slices.Backward(sorted[max(0, n-slowest):]) {
		s.Slowest = append(s.Slowest, fmt.Sprintf("%s: %.1f ms after %q", r.subject, milliseconds(r.took), r.decisive.what))
	}
	return s
}

// cost is what a manager has used between two looks at it.
func cost(before, after process.Usage) costReport {
	return costReport{CPUSeconds: seconds(after.CPU - before.CPU), PeakMiB: mebibytes(after.PeakMemory), AnonymousMiB: mebibytes(after.Anonymous)}
}

func mebibytes(bytes int64) float64 { return round(float64(bytes) / (1 << 20)) }

func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

// round keeps one digit after the point.
func round(value float64) float64 { return math.Round(value*10) / 10 }

// sum adds the requests of the managers up.
func (r *report) sum() {
	r.Requests = totals{TargetInstallation: targetRequests, TargetIdle: targetIdle}
	for _, m := range r.Managers {
		r.Requests.Installation += m.Requests.Installation.Total
		r.Requests.Afterwards += m.Requests.Afterwards.Total
		r.Requests.Idle += m.Requests.Idle.Total
	}
}

// write writes the report as JSON.
func (r *report) write(path string) error {
	r.sum()
	return results.Write(path, r)
}
