package main

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// report is the result of a run, as it is written as JSON. A start is the first one after the clusters were made, a
// restart the second: what the first one writes tells how good the clones are, what the second one writes is a defect.
type report struct {
	Clusters int     `json:"clusters"`
	Sample   string  `json:"sample"`
	Shards   int     `json:"shards,omitempty"`
	Dead     float64 `json:"dead,omitempty"`
	Foreign  float64 `json:"foreign,omitempty"`
	HTTP1    bool    `json:"http1,omitempty"`
	// MemoryLimitMiB are the limits that the managers ran with (GOMEMLIMIT).
	MemoryLimitMiB map[string]float64           `json:"memoryLimitMiB"`
	Steps          []step                       `json:"steps"`
	Start          startReport                  `json:"start"`
	Idle           idleReport                   `json:"idle"`
	Restart        startReport                  `json:"restart"`
	Reactions      map[string]results.Quantiles `json:"reactions,omitempty"`
	Targets        results.Targets              `json:"targets"`
}

// step is a part of the run, and how long it took.
type step struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// startReport is a start of both managers, until they were quiet.
type startReport struct {
	QuietSeconds float64                   `json:"quietSeconds"`
	Managers     map[string]*managerReport `json:"managers"`
	// Sites are the requests to the API of the clusters, by verb and resource.
	Sites map[string]int `json:"sites"`
}

// managerReport is what a manager did and used in a start.
type managerReport struct {
	MemoryMiB  float64 `json:"memoryMiB"`
	PeakMiB    float64 `json:"peakMiB"`
	HeapMiB    float64 `json:"heapMiB"`
	StacksMiB  float64 `json:"stacksMiB"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"`
	// Requests are those that an amount of work causes, Writes are among them; Repeated are those beyond the first of its kind for an object.
	Requests int `json:"requests"`
	Writes   int `json:"writes"`
	Repeated int `json:"repeated"`
	// Informers and Discovery are the requests by which watches begin, and those about no object.
	Informers int `json:"informers"`
	Discovery int `json:"discovery"`
	// Written are the writes, by verb and resource.
	Written map[string]int `json:"written"`
}

// idleReport is a time in which nothing happened.
type idleReport struct {
	Seconds    float64            `json:"seconds"`
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// Hub are the requests to the hub, by verb and resource; SiteRequests those to the API of the clusters.
	Hub          map[string]int `json:"hub"`
	SiteRequests int            `json:"siteRequests"`
}

// newStartReport counts the requests of a start; nameOf tells which manager a user is.
func newStartReport(p *phase, nameOf func(audit.Request) string) startReport {
	r := startReport{
		Managers: map[string]*managerReport{},
		Sites:    p.sites.Where(func(r audit.Request) bool { return r.Resource != "" }).Count(),
	}
	for _, name := range managers {
		all := p.hub.Where(func(r audit.Request) bool { return nameOf(r) == name })
		work := all.Work()
		writes := work.Where(writing)
		discovery := len(all.Where(func(r audit.Request) bool { return r.Resource == "" }))
		r.Managers[name] = &managerReport{
			Requests: len(work), Writes: len(writes), Written: writes.Count(), Repeated: repeated(work), Discovery: discovery,
			Informers: len(all.Where(func(r audit.Request) bool {
				return r.Verb == "watch" ||
					r.Verb == "list"
			})) - len(work.Where(func(r audit.Request) bool { return r.Verb == "list" })),
		}
	}
	return r
}

func writing(r audit.Request) bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// repeated counts the requests that ask the same of an object again.
func repeated(requests audit.Requests) int {
	asked := map[string]bool{}
	again := 0
	for _, r := range requests {
		if r.Name == "" {
			continue
		}
		key := strings.Join([]string{r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name}, "/")
		if asked[key] {
			again++
		}
		asked[key] = true
	}
	return again
}

// writes are those of both managers.
func (r *startReport) writes() int {
	sum := 0
	for _, m := range r.Managers {
		sum += m.Writes
	}
	return sum
}

// missed reports whether a target was missed.
func (r *report) missed() bool {
	return r.Targets.Missed()
}

// write writes the report as JSON.
func (r *report) write(path string) error {
	return results.Write(path, r)
}

func mebibytes(bytes int64) float64 { return round(float64(bytes) / (1 << 20)) }

func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*100) / 100 }

// round keeps one digit after the point.
func round(value float64) float64 { return results.Round(value) }
