package scale

import (
	"fmt"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// Print implements [results.Report].
func (r *report) Print(t *results.Table) {
	r.printSteps(t)
	r.printManagers(t)
	r.printRequests(t)
	r.printReactions(t)
	r.Targets.Print(t)
	t.Row("")
	t.Row(r.row())
}

func (r *report) printSteps(t *results.Table) {
	t.Row("")
	t.Row("STEP", "s")
	for _, s := range r.Steps {
		t.Row(s.Name, s.Seconds)
	}
}

func (r *report) printManagers(t *results.Table) {
	t.Row("")
	t.Row(strings.ToUpper(fmt.Sprintf("%d clusters", r.Clusters)), "limit, MiB", "peak memory", "memory", "heap", "stacks",
		"goroutines", "files", "CPU s")
	for _, name := range managers.Names {
		for i, start := range []startReport{r.Start, r.Restart} {
			m := start.Managers[name]
			t.Row(name+", "+[]string{"start", "restart"}[i], r.MemoryLimitMiB[name], m.PeakMiB, m.MemoryMiB, m.HeapMiB,
				m.StacksMiB, m.Goroutines, m.Files, m.CPUSeconds)
		}
	}
}

func (r *report) printRequests(t *results.Table) {
	t.Row("")
	t.Row("REQUESTS", "start", "restart")
	for _, name := range managers.Names {
		first, second := r.Start.Managers[name], r.Restart.Managers[name]
		t.Row(name, first.Requests, second.Requests)
		t.Row(name+": writes", first.Writes, second.Writes)
		for _, kind := range results.Keys(first.Written, second.Written) {
			t.Row("  "+kind, first.Written[kind], second.Written[kind])
		}
		t.Row(name+": repeated requests for an object", first.Repeated, second.Repeated)
		t.Row(name+": lists and watches of informers", first.Informers, second.Informers)
		t.Row(name+": discovery", first.Discovery, second.Discovery)
	}
	for _, kind := range results.Keys(r.Start.Sites, r.Restart.Sites) {
		t.Row("clusters: "+kind, r.Start.Sites[kind], r.Restart.Sites[kind])
	}
	t.Row("quiet after, s", r.Start.QuietSeconds, r.Restart.QuietSeconds)
	t.Row("")
	t.Row(fmt.Sprintf("IDLE FOR %g S", r.Idle.Seconds), "")
	for _, name := range managers.Names {
		t.Row(name+": CPU s", r.Idle.CPUSeconds[name])
	}
	for _, kind := range results.Keys(r.Idle.Hub) {
		t.Row("hub: "+kind, r.Idle.Hub[kind])
	}
	t.Row("clusters: requests", r.Idle.SiteRequests)
}

func (r *report) printReactions(t *results.Table) {
	if len(r.Reactions) == 0 {
		return
	}
	t.Row("")
	t.Row("REACTION, ms", "n", "p50", "p99", "max")
	for _, name := range append([]string{results.Reference}, reactionNames...) {
		q := r.Reactions[name]
		t.Row(name, q.Count, q.P50, q.P99, q.Max)
	}
}

// row returns the row for docs/scale.md.
func (r *report) row() string {
	c, b := r.Start.Managers[env.ControlPlane], r.Start.Managers[env.Bootstrap]
	idle := results.Round2((r.Idle.CPUSeconds[env.ControlPlane] + r.Idle.CPUSeconds[env.Bootstrap]) * 60 / max(r.Idle.Seconds, 1))
	return fmt.Sprintf("| %d | %.0f (%.0f) MiB | %.0f MiB | %d | %.1f s | %d (%d) | %d (%d) | %.1f s | %.0f (%.0f) MiB | %.0f MiB |",
		r.Clusters, r.peak(env.ControlPlane), c.MemoryMiB, c.HeapMiB, c.Goroutines, r.Start.QuietSeconds, c.Requests+b.Requests, r.Start.writes(),
		r.Restart.Managers[env.ControlPlane].Requests+r.Restart.Managers[env.Bootstrap].Requests, r.Restart.writes(), idle,
		r.peak(env.Bootstrap), b.MemoryMiB, b.HeapMiB)
}

// peak returns the peak memory of a manager in both starts, in MiB.
func (r *report) peak(name string) float64 {
	return max(r.Start.Managers[name].PeakMiB, r.Restart.Managers[name].PeakMiB)
}
