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

// print writes the results as tables for people.
func (r *report) print(out io.Writer, path string) error {
	r.sum()
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table := &table{to: t}
	r.printReactions(table)
	r.printCosts(table)
	r.printRequests(table)
	for _, act := range r.Unexplained {
		table.row("unexplained", act)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	if _, err := fmt.Fprintf(out, "\nwritten to %s\n", path); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}

type table struct{ to io.Writer }

// row writes a line; what goes wrong shows when the writer behind is flushed.
func (t *table) row(cells ...any) {
	texts := make([]string, 0, len(cells))
	for _, cell := range cells {
		texts = append(texts, fmt.Sprint(cell))
	}
	_, _ = fmt.Fprintln(t.to, strings.Join(texts, "\t"))
}

func (r *report) printReactions(t *table) {
	t.row("")
	t.row("REACTION, ms", "one cluster", "", "", fmt.Sprintf("%d at once", r.Clusters), "", "", "target", "")
	t.row("", "n", "median", "max", "n", "median", "max", "max", "")
	f := r.Reactions[reference]
	t.row(reference, f.One.Count, f.One.Median, f.One.Max, f.Many.Count, f.Many.Median, f.Many.Max)
	for _, handOver := range handOvers {
		f := r.Reactions[handOver]
		t.row(handOver, f.One.Count, f.One.Median, f.One.Max, f.Many.Count, f.Many.Median, f.Many.Max, f.TargetMilliseconds,
			verdict(f.TargetMilliseconds, f.One.Max, f.Many.Max))
	}
	for _, handOver := range handOvers {
		f := r.Reactions[handOver]
		if max(f.One.Max, f.Many.Max) > f.TargetMilliseconds {
			for _, slow := range append(slices.Clone(f.One.Slowest), f.Many.Slowest...) {
				t.row("  slowest: " + handOver + ": " + slow)
			}
		}
	}
}

func (r *report) printCosts(t *table) {
	t.row("")
	t.row("COST", "one cluster", fmt.Sprintf("%d at once", r.Clusters), "target", "")
	t.row("seconds from apply to Available", r.SecondsToAvailable.One, r.SecondsToAvailable.Many)
	t.row(fmt.Sprintf("%d processors busy, %%", r.Machine.Processors), r.Machine.BusyPercent.One, r.Machine.BusyPercent.Many)
	for _, name := range managers {
		m := r.manager(name)
		t.row(name+": CPU seconds (start: "+fmt.Sprint(m.StartCPUSeconds)+")", m.One.CPUSeconds, m.Many.CPUSeconds)
		t.row(name+": peak memory, MiB", m.One.PeakMiB, m.Many.PeakMiB, m.TargetMiB, verdict(m.TargetMiB, m.One.PeakMiB, m.Many.PeakMiB))
		t.row(name+": of it not the program file, MiB", m.One.AnonymousMiB, m.Many.AnonymousMiB, "", "")
	}
	t.row("registry look-ups, one release by version", r.Registry.ByVersion, r.Registry.ManyByVersion, r.Registry.TargetByVersion,
		verdict(float64(r.Registry.TargetByVersion), float64(r.Registry.ByVersion), float64(r.Registry.ManyByVersion)))
	t.row("registry look-ups, release by digest", r.Registry.ByDigest, "", r.Registry.TargetByDigest,
		verdict(float64(r.Registry.TargetByDigest), float64(r.Registry.ByDigest)))
}

func (r *report) printRequests(t *table) {
	bootstrap, controlPlane := r.manager(env.Bootstrap).Requests, r.manager(env.ControlPlane).Requests
	t.row("")
	t.row("API REQUESTS, one cluster", env.Bootstrap, env.ControlPlane, "both", "target", "")
	t.row("from apply to Available", bootstrap.Installation.Total, controlPlane.Installation.Total, r.Requests.Installation, targetRequests,
		verdict(targetRequests, float64(r.Requests.Installation)))
	t.row("after that, until silent", bootstrap.Afterwards.Total, controlPlane.Afterwards.Total, r.Requests.Afterwards)
	t.row("idle", bootstrap.Idle.Total, controlPlane.Idle.Total, r.Requests.Idle, targetIdle, verdict(targetIdle, float64(r.Requests.Idle)))
	t.row("watches, at start", bootstrap.Start.Watches, controlPlane.Start.Watches)
	t.row("watches, later", watchesLater(bootstrap), watchesLater(controlPlane))
	t.row("leases", leases(bootstrap), leases(controlPlane))
	t.row("discovery, from apply on", discoveryLater(bootstrap), discoveryLater(controlPlane))
	kinds := map[string]bool{}
	for _, counts := range []requestCounts{bootstrap, controlPlane} {
		for kind := range counts.Installation.By {
			kinds[kind] = true
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		b, c := bootstrap.Installation.By[kind], controlPlane.Installation.By[kind]
		t.row("  "+kind, b, c, b+c)
	}
}

func watchesLater(c requestCounts) int {
	return c.Installation.Watches + c.Afterwards.Watches + c.Idle.Watches
}

func leases(c requestCounts) int {
	return c.Start.Leases + c.Installation.Leases + c.Afterwards.Leases + c.Idle.Leases
}

func discoveryLater(c requestCounts) int {
	return c.Installation.Discovery + c.Afterwards.Discovery + c.Idle.Discovery
}

// verdict is "ok" when no value is over the target.
func verdict(target float64, values ...float64) string {
	if slices.Max(values) > target {
		return "over"
	}
	return "ok"
}
