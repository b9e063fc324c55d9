package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// print writes the results as a table for people.
func (r *report) print(out io.Writer, path string) error {
	t := results.NewTable(out)
	r.printSteps(t)
	r.printManagers(t)
	r.printRequests(t)
	r.printReactions(t)
	r.Targets.Print(t)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	if _, err := fmt.Fprintf(out, "\n%s\n\nwritten to %s\n", r.row(), path); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
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
	for _, name := range managers {
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
	for _, name := range managers {
		first, second := r.Start.Managers[name], r.Restart.Managers[name]
		t.Row(name, first.Requests, second.Requests)
		t.Row(name+": of them writes", first.Writes, second.Writes)
		for _, what := range keys(first.Written, second.Written) {
			t.Row("  "+what, first.Written[what], second.Written[what])
		}
		t.Row(name+": of them ask an object again", first.Repeated, second.Repeated)
		t.Row(name+": lists and watches of informers", first.Informers, second.Informers)
		t.Row(name+": discovery", first.Discovery, second.Discovery)
	}
	for _, what := range keys(r.Start.Sites, r.Restart.Sites) {
		t.Row("clusters: "+what, r.Start.Sites[what], r.Restart.Sites[what])
	}
	t.Row("quiet after, s", r.Start.QuietSeconds, r.Restart.QuietSeconds)
	t.Row("")
	t.Row(fmt.Sprintf("IDLE FOR %g S", r.Idle.Seconds), "")
	for _, name := range managers {
		t.Row(name+": CPU s", r.Idle.CPUSeconds[name])
	}
	for _, what := range keys(r.Idle.Hub) {
		t.Row("hub: "+what, r.Idle.Hub[what])
	}
	t.Row("clusters: requests", r.Idle.SiteRequests)
}

func keys(counts ...map[string]int) []string {
	all := map[string]int{}
	for _, c := range counts {
		maps.Copy(all, c)
	}
	return slices.Sorted(maps.Keys(all))
}

func (r *report) printReactions(t *results.Table) {
	if len(r.Reactions) == 0 {
		return
	}
	t.Row("")
	t.Row("REACTION, ms", "n", "p50", "p99", "max")
	for _, name := range append([]string{plainWrite}, reactionNames...) {
		q := r.Reactions[name]
		t.Row(name, q.Count, q.P50, q.P99, q.Max)
	}
}

// row is the line of docs/scale.md.
func (r *report) row() string {
	c, b := r.Start.Managers[env.ControlPlane], r.Start.Managers[env.Bootstrap]
	idle := round2((r.Idle.CPUSeconds[env.ControlPlane] + r.Idle.CPUSeconds[env.Bootstrap]) * 60 / max(r.Idle.Seconds, 1))
	return fmt.Sprintf("| %d | %.0f (%.0f) MiB | %.0f MiB | %d | %.1f s | %d (%d) | %d (%d) | %.1f s | %.0f (%.0f) MiB | %.0f MiB |",
		r.Clusters, r.peak(env.ControlPlane), c.MemoryMiB, c.HeapMiB, c.Goroutines, r.Start.QuietSeconds, c.Requests+b.Requests, r.Start.writes(),
		r.Restart.Managers[env.ControlPlane].Requests+r.Restart.Managers[env.Bootstrap].Requests, r.Restart.writes(), idle,
		r.peak(env.Bootstrap), b.MemoryMiB, b.HeapMiB)
}

// peak is the most that a manager has used in MiB, of both starts.
func (r *report) peak(name string) float64 {
	return max(r.Start.Managers[name].PeakMiB, r.Restart.Managers[name].PeakMiB)
}
