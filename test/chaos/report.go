package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// report is the result of a run. It is written as JSON.
type report struct {
	mu sync.Mutex

	Seed     uint64  `json:"seed"`
	Rounds   int     `json:"rounds"`
	Clusters int     `json:"clusters"`
	Seconds  float64 `json:"seconds"`
	// Steps are the numbers of completed steps of journeys, and Average their durations.
	Steps   map[step]int     `json:"steps"`
	Average map[step]float64 `json:"averageSeconds"`
	// Planned are the acts that were tried, and Acts those that hit. Faults are the faults between managers and
	// API server, and on the connections to clusters. Restarts are the numbers of restarts of managers.
	Planned  map[string]int            `json:"planned"`
	Acts     map[string]int            `json:"acts"`
	Faults   map[string]map[string]int `json:"faults"`
	Restarts map[string]int            `json:"restarts"`
	// Obeyed is how often a user followed the advice of a condition, by its reason.
	Obeyed map[string]int `json:"obeyed"`
	// Busiest is the most frequent request of each manager process per minute.
	Busiest map[string]load `json:"busiest"`
	// Checked is how often each rule was checked.
	Checked map[string]int `json:"checked"`
	Broken  []violation    `json:"broken"`

	options options
}

func newReport(o options) *report {
	return &report{
		Seed: o.seed, options: o, Busiest: map[string]load{},
		Steps: map[step]int{}, Average: map[step]float64{}, Planned: map[string]int{}, Acts: map[string]int{},
		Faults: map[string]map[string]int{}, Restarts: map[string]int{}, Obeyed: map[string]int{},
		Checked: map[string]int{}, Broken: []violation{},
	}
}

func (r *report) step(s step, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := float64(r.Steps[s])
	r.Steps[s]++
	r.Average[s] = (r.Average[s]*n + took.Seconds()) / (n + 1)
}

func (r *report) planned(name string)       { r.add(r.Planned, name) }
func (r *report) hit(name string)           { r.add(r.Acts, name) }
func (r *report) restarted(name string)     { r.add(r.Restarts, name) }
func (r *report) countAdvice(reason string) { r.add(r.Obeyed, reason) }

func (r *report) add(counts map[string]int, key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts[key]++
}

// close adds the figures of a finished round.
func (r *report) close(round *round, took time.Duration) {
	f := round.follower
	f.mu.Lock()
	defer f.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Rounds++
	r.Clusters += len(round.journeys)
	r.Seconds += took.Seconds()
	for place, conns := range round.everywhere() {
		if place != toClusters { // the other connections last for all rounds
			r.Faults[place] = nil
		}
		for _, conn := range conns {
			r.met(place, conn.Counts())
		}
	}
	maps.Copy(r.Checked, f.checked)
	r.Checked[endRule] = r.Clusters
	for i := range f.broken {
		if f.broken[i].Seed == 0 {
			f.broken[i].Seed = round.seed
		}
	}
	r.Broken = append([]violation{}, f.broken...)
}

// met adds the faults that happened in a place.
func (r *report) met(place string, counts map[faultproxy.Fault]int) {
	if r.Faults[place] == nil {
		r.Faults[place] = map[string]int{}
		for fault := range weatherOf(place) {
			if r.options.wants(string(fault)) {
				r.Faults[place][string(fault)] = 0 // a fault that never happens is reported
			}
		}
	}
	for fault, n := range counts {
		r.Faults[place][string(fault)] += n
	}
}

// longRun is the number of complete rounds after which a fault that never happened is a finding.
const longRun = 4

// end judges the run as a whole.
func (r *report) end() {
	if r.Rounds < longRun || r.options.clusters < len(routes) {
		return
	}
	r.Checked[missRule] = len(r.Planned) + len(r.happened())
	for _, what := range r.missed() {
		r.Broken = append(r.Broken, violation{Rule: missRule, What: what, Seed: r.Seed, At: time.Now(), Rounds: r.Rounds})
	}
}

// missed names the acts and faults that never hit.
func (r *report) missed() []string {
	var findings []string
	for _, name := range slices.Sorted(maps.Keys(r.Planned)) {
		if r.Acts[name] == 0 {
			findings = append(findings, fmt.Sprintf("act %s was tried %d times, and never hit", name, r.Planned[name]))
		}
	}
	happened := r.happened()
	for _, name := range slices.Sorted(maps.Keys(happened)) {
		if happened[name] == 0 {
			findings = append(findings, fmt.Sprintf("fault %s never happened", name))
		}
	}
	for _, place := range slices.Sorted(maps.Keys(r.Faults)) {
		// second processes run for a short time
		if len(r.Faults[place]) > 0 && sum(r.Faults[place]) == 0 && !strings.HasSuffix(place, secondOf("")) {
			findings = append(findings, "no fault happened on the connections of "+place)
		}
	}
	return findings
}

// happened is how often each selected fault happened in all places. Faults of downloads are counted apart from
// those of API servers, though some have the same name.
func (r *report) happened() map[string]int {
	happened := map[string]int{}
	for place, counts := range r.Faults {
		of := ""
		if place == toRegistry || place == toService {
			of = " of downloads"
		}
		for name, n := range counts {
			happened[name+of] += n
		}
	}
	return happened
}

// again returns the command that repeats rounds.
func (r *report) again(seed uint64, rounds int) string {
	args := fmt.Sprintf("-storm=%s -bound=%s", r.options.storm, r.options.bound)
	if r.options.only != "" {
		args += " -only=" + r.options.only
	}
	operator := ""
	if r.options.operator == string(lab.Real) {
		operator = " BMO=" + r.options.operator
	}
	return fmt.Sprintf("make chaos%s ROUNDS=%d CLUSTERS=%d CHAOS='%s' SEED=%d", operator, max(rounds, 1), r.options.clusters, args, seed)
}

// busy records the most frequent request of a process.
func (r *report) busy(process string, l load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Times > r.Busiest[process].Times {
		r.Busiest[process] = l
	}
}

// broken reports whether any rule was broken.
func (r *report) broken() bool { return len(r.Broken) > 0 }

func (r *report) write(path string) error { return results.Write(path, r) }

// print writes the figures, and each violation with the command that repeats its round.
func (r *report) print(out io.Writer, path string) {
	var b strings.Builder
	fmt.Fprintf(&b, "chaos: %d rounds, %d clusters in %.0f s; %d faults, %d acts, %d restarts; %d rules broken\n", r.Rounds,
		r.Clusters, r.Seconds, r.faults(), sum(r.Acts), sum(r.Restarts), len(r.Broken))
	for _, s := range slices.Sorted(maps.Keys(r.Steps)) {
		fmt.Fprintf(&b, "  %-16s %4d times, %.0f s on average\n", s, r.Steps[s], r.Average[s])
	}
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		fmt.Fprintf(&b, "  faults of %s: %s\n", name, listed(r.Faults[name]))
	}
	fmt.Fprintf(&b, "  acts (hit of tried): %s\n", strings.Join(r.hits(), ", "))
	for _, name := range slices.Sorted(maps.Keys(r.Busiest)) {
		fmt.Fprintf(&b, "  most frequent request per minute by %s: %s\n", name, r.Busiest[name])
	}
	fmt.Fprintf(&b, "  checked: %s\n", listed(r.Checked))
	if len(r.Obeyed) > 0 {
		fmt.Fprintf(&b, "  advice of conditions followed: %s\n", listed(r.Obeyed))
	}
	for _, v := range r.Broken {
		fmt.Fprintf(&b, "BROKEN: %s\n  %s\n  repeat: %s\n", v.Rule, strings.ReplaceAll(v.What, "\n", "\n  "), r.again(v.Seed, v.Rounds))
	}
	fmt.Fprintf(&b, "figures: %s\n", path)
	_, _ = io.WriteString(out, b.String()) // errors do not matter
}

// hits returns for each act how often it hit, including acts that never did.
func (r *report) hits() []string {
	var findings []string
	for _, name := range actNames {
		if r.options.wants(name) {
			findings = append(findings, fmt.Sprintf("%s %d of %d", name, r.Acts[name], r.Planned[name]))
		}
	}
	return findings
}

func (r *report) faults() int {
	n := 0
	for _, counts := range r.Faults {
		n += sum(counts)
	}
	return n
}

func sum(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

func listed(counts map[string]int) string {
	parts := make([]string, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
