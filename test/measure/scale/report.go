package scale

import (
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// report is the content of the JSON file. Start is the first start with the clusters. Its writes show how good the
// clones are. Each write of Restart is a defect.
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

// step is a part of the run with its duration.
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

// managerReport has the requests and resources of a manager in a start.
type managerReport struct {
	MemoryMiB  float64 `json:"memoryMiB"`
	PeakMiB    float64 `json:"peakMiB"`
	HeapMiB    float64 `json:"heapMiB"`
	StacksMiB  float64 `json:"stacksMiB"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"`
	// Requests are the requests for work, Writes are the writes among them. Repeated are the repeated requests for an
	// object.
	Requests int `json:"requests"`
	Writes   int `json:"writes"`
	Repeated int `json:"repeated"`
	// Informers are the requests that begin watches, Discovery the requests without object.
	Informers int `json:"informers"`
	Discovery int `json:"discovery"`
	// Written are the writes, by verb and resource.
	Written map[string]int `json:"written"`
}

// idleReport is a time without changes.
type idleReport struct {
	Seconds    float64            `json:"seconds"`
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// Hub are the requests to the hub by verb and resource, SiteRequests the number of requests to the clusters.
	Hub          map[string]int `json:"hub"`
	SiteRequests int            `json:"siteRequests"`
}

// newStartReport counts the requests of a start. nameOf returns the manager of a request.
func newStartReport(p *phase, nameOf func(audit.Request) string) startReport {
	r := startReport{
		Managers: map[string]*managerReport{},
		Sites:    p.sites.Where(func(r audit.Request) bool { return r.Resource != "" }).Count(),
	}
	for _, name := range managers.Names {
		all := p.hub.Where(func(r audit.Request) bool { return nameOf(r) == name })
		work := all.Work()
		writes := work.Writes()
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

// repeated counts the requests that repeat another one for the same object.
func repeated(requests audit.Requests) int {
	sent := map[string]bool{}
	again := 0
	for _, r := range requests {
		if r.Name == "" {
			continue
		}
		key := strings.Join([]string{r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Name}, "/")
		if sent[key] {
			again++
		}
		sent[key] = true
	}
	return again
}

// writes returns the number of writes of both managers.
func (r *startReport) writes() int {
	sum := 0
	for _, m := range r.Managers {
		sum += m.Writes
	}
	return sum
}

// Judged implements [results.Report].
func (r *report) Judged() results.Targets { return r.Targets }
