package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// print writes the results as tables for people.
func (r *report) print(out io.Writer, path string) error {
	r.sum()
	t := results.NewTable(out)
	r.printReactions(t)
	r.printCosts(t)
	r.printRequests(t)
	for _, act := range r.Unexplained {
		t.Row("unexplained", act)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	if _, err := fmt.Fprintf(out, "\nwritten to %s\n", path); err != nil {
		return fmt.Errorf("cannot print the results: %w", err)
	}
	return nil
}

func (r *report) printReactions(t *results.Table) {
	one, many := func(f *reactionReport) *statistics { return &f.One }, func(f *reactionReport) *statistics { return &f.Many }
	t.Row("")
	t.Row("REACTION, ms", "one cluster", "", "", "", "", "", fmt.Sprintf("%d at once", r.Clusters))
	t.Row("", "n", "median", "p99", "max", "p99 at most", "", "n", "median", "p99", "max", "p99 at most", "")
	for _, untargeted := range slices.Concat(references, byOthers) {
		f := r.Reactions[untargeted]
		t.Row(untargeted, f.One.Count, f.One.Median, f.One.P99, f.One.Max, "", "", f.Many.Count, f.Many.Median, f.Many.P99, f.Many.Max)
	}
	for _, handOver := range handOvers {
		f := r.Reactions[handOver]
		t.Row(handOver,
			f.One.Count, f.One.Median, f.One.P99, f.One.Max, r.reactionTarget(handOver, one), verdict(r.reactionTarget(handOver, one), f.One.P99),
			f.Many.Count, f.Many.Median, f.Many.P99, f.Many.Max, r.reactionTarget(handOver, many), verdict(r.reactionTarget(handOver, many), f.Many.P99))
	}
	for _, handOver := range handOvers {
		f := r.Reactions[handOver]
		if f.One.P99 > r.reactionTarget(handOver, one) || f.Many.P99 > r.reactionTarget(handOver, many) {
			for _, slow := range append(slices.Clone(f.One.Slowest), f.Many.Slowest...) {
				t.Row("  slowest: " + handOver + ": " + slow)
			}
		}
	}
}

func (r *report) printCosts(t *results.Table) {
	t.Row("")
	t.Row("COST", "one cluster", fmt.Sprintf("%d at once", r.Clusters), "target", "")
	t.Row("seconds from apply to Available", r.SecondsToAvailable.One, r.SecondsToAvailable.Many)
	t.Row(fmt.Sprintf("%d processors busy, %%", r.Machine.Processors), r.Machine.BusyPercent.One, r.Machine.BusyPercent.Many)
	for _, name := range managers {
		m := r.manager(name)
		t.Row(name+": CPU seconds (start: "+fmt.Sprint(m.StartCPUSeconds)+")", m.One.CPUSeconds, m.Many.CPUSeconds)
		t.Row(name+": peak memory, MiB", m.One.PeakMiB, m.Many.PeakMiB, m.TargetMiB, verdict(m.TargetMiB, m.One.PeakMiB, m.Many.PeakMiB))
		t.Row(name+": of it not the program file, MiB", m.One.AnonymousMiB, m.Many.AnonymousMiB, "", "")
	}
	t.Row("both managers: CPU seconds of each cluster", "", r.perCluster())
	t.Row("clusters in an hour that were installed", "", r.hourly())
	if r.Sample == singleNode {
		t.Row(fmt.Sprintf("clusters in an hour that half of %d processors would be enough for, by that", hubProcessors), "", r.affordable(), targetHour, atLeast(targetHour, r.affordable()))
	}
	t.Row("registry look-ups, one release by version", r.Registry.ByVersion, r.Registry.ManyByVersion, r.Registry.TargetByVersion,
		verdict(float64(r.Registry.TargetByVersion), float64(r.Registry.ByVersion), float64(r.Registry.ManyByVersion)))
	t.Row("registry look-ups, release by digest", r.Registry.ByDigest, "", r.Registry.TargetByDigest,
		verdict(float64(r.Registry.TargetByDigest), float64(r.Registry.ByDigest)))
}

func (r *report) printRequests(t *results.Table) {
	bootstrap, controlPlane := r.manager(env.Bootstrap).Requests, r.manager(env.ControlPlane).Requests
	t.Row("")
	t.Row("API REQUESTS, one cluster", env.Bootstrap, env.ControlPlane, "both", "target", "")
	t.Row("from apply to Available", bootstrap.Installation.Total, controlPlane.Installation.Total, r.Requests.Installation, targetRequests,
		verdict(targetRequests, float64(r.Requests.Installation)))
	t.Row("after that, until silent", bootstrap.Afterwards.Total, controlPlane.Afterwards.Total, r.Requests.Afterwards)
	t.Row("idle", bootstrap.Idle.Total, controlPlane.Idle.Total, r.Requests.Idle, targetIdle, verdict(targetIdle, float64(r.Requests.Idle)))
	t.Row("watches, at start", bootstrap.Start.Watches, controlPlane.Start.Watches)
	t.Row("watches, later", watchesLater(bootstrap), watchesLater(controlPlane))
	t.Row("leases", leases(bootstrap), leases(controlPlane))
	t.Row("discovery, from apply on", discoveryLater(bootstrap), discoveryLater(controlPlane))
	kinds := map[string]bool{}
	for _, counts := range []requestCounts{bootstrap, controlPlane} {
		for kind := range counts.Installation.By {
			kinds[kind] = true
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		b, c := bootstrap.Installation.By[kind], controlPlane.Installation.By[kind]
		t.Row("  "+kind, b, c, b+c)
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

// atLeast is "ok" when the value reaches the target.
func atLeast(target, value float64) string {
	return verdict(-target, -value)
}
