package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// print writes the results as a table for people.
func (r *report) print(out io.Writer, path string) error {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	r.printSteps(t)
	r.printManagers(t)
	r.printRequests(t)
	r.printReactions(t)
	r.printTargets(t)
	if err := t.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	if _, err := fmt.Fprintf(out, "\n%s\n\nwritten to %s\n", r.row(), path); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}

type table struct{ *tabwriter.Writer }

// row writes a line; what goes wrong shows when the writer is flushed.
func (t *table) row(cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, cell := range cells {
		texts = append(texts, fmt.Sprint(cell))
	}
	_, _ = fmt.Fprintln(t, strings.Join(texts, "\t"))
}

func (r *report) printSteps(t *table) {
	t.row("")
	t.row("STEP", "s")
	for _, s := range r.Steps {
		t.row(s.Name, s.Seconds)
	}
}

func (r *report) printManagers(t *table) {
	t.row("")
	t.row(strings.ToUpper(fmt.Sprintf("%d clusters", r.Clusters)), "limit, MiB", "peak memory", "memory", "heap", "goroutines", "files", "CPU s")
	for _, name := range managers {
		for i, start := range []startReport{r.Start, r.Restart} {
			m := start.Managers[name]
			t.row(name+", "+[]string{"start", "restart"}[i], r.MemoryLimitMiB[name], m.PeakMiB, m.MemoryMiB, m.HeapMiB, m.Goroutines, m.Files, m.CPUSeconds)
		}
	}
}

func (r *report) printRequests(t *table) {
	t.row("")
	t.row("REQUESTS", "start", "restart")
	for _, name := range managers {
		first, second := r.Start.Managers[name], r.Restart.Managers[name]
		t.row(name, first.Requests, second.Requests)
		t.row(name+": of them writes", first.Writes, second.Writes)
		for _, what := range keys(first.Written, second.Written) {
			t.row("  "+what, first.Written[what], second.Written[what])
		}
		t.row(name+": of them ask an object again", first.Repeated, second.Repeated)
		t.row(name+": lists and watches of informers", first.Informers, second.Informers)
		t.row(name+": discovery", first.Discovery, second.Discovery)
	}
	for _, what := range keys(r.Start.Sites, r.Restart.Sites) {
		t.row("clusters: "+what, r.Start.Sites[what], r.Restart.Sites[what])
	}
	t.row("quiet after, s", r.Start.QuietSeconds, r.Restart.QuietSeconds)
	t.row("")
	t.row(fmt.Sprintf("IDLE FOR %g S", r.Idle.Seconds), "")
	for _, name := range managers {
		t.row(name+": CPU s", r.Idle.CPUSeconds[name])
	}
	for _, what := range keys(r.Idle.Hub) {
		t.row("hub: "+what, r.Idle.Hub[what])
	}
	t.row("clusters: requests", r.Idle.SiteRequests)
}

func keys(counts ...map[string]int) []string {
	all := map[string]int{}
	for _, c := range counts {
		maps.Copy(all, c)
	}
	return slices.Sorted(maps.Keys(all))
}

func (r *report) printReactions(t *table) {
	if len(r.Reactions) == 0 {
		return
	}
	t.row("")
	t.row("REACTION, ms", "n", "p50", "p99", "max")
	for _, name := range append([]string{plainWrite}, reactionNames...) {
		q := r.Reactions[name]
		t.row(name, q.Count, q.P50, q.P99, q.Max)
	}
}

func (r *report) printTargets(t *table) {
	t.row("")
	t.row("TARGET", "found", "at most", "")
	for _, target := range r.Targets {
		verdict := "ok"
		if !target.met() {
			verdict = "MISSED"
		}
		t.row(target.What, target.Found, target.Limit, verdict)
	}
}

// row is the line of docs/scale.md.
func (r *report) row() string {
	c, b := r.Start.Managers[env.ControlPlane], r.Start.Managers[env.Bootstrap]
	idle := round2((r.Idle.CPUSeconds[env.ControlPlane] + r.Idle.CPUSeconds[env.Bootstrap]) * 60 / max(r.Idle.Seconds, 1))
	return fmt.Sprintf("| %d | %.0f (%.0f) MiB | %.0f MiB | %d | %.1f s | %d (%d) | %d (%d) | %.1f s | %.0f (%.0f) MiB | %.0f MiB |",
		r.Clusters, c.PeakMiB, c.MemoryMiB, c.HeapMiB, c.Goroutines, r.Start.QuietSeconds, c.Requests+b.Requests, r.Start.writes(),
		r.Restart.Managers[env.ControlPlane].Requests+r.Restart.Managers[env.Bootstrap].Requests, r.Restart.writes(), idle, b.PeakMiB, b.MemoryMiB, b.HeapMiB)
}
