package bench

import (
	"fmt"
	"slices"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// Print implements [results.Report].
func (r *report) Print(t *results.Table) {
	r.printReactions(t)
	r.printInstallation(t)
	r.printCosts(t)
	r.printRequests(t)
	r.printUnmatched(t)
	r.Targets.Print(t)
}

func (r *report) printReactions(t *results.Table) {
	t.Row("")
	t.Row("REACTION, ms", "one cluster", "", "", "", fmt.Sprintf("%d at once", r.Clusters))
	t.Row("", "n", "p50", "p99", "max", "n", "p50", "p99", "max")
	for _, handOver := range slices.Concat(references, byOthers, handOvers) {
		one, many := r.Reactions[handOver].One, r.Reactions[handOver].Many
		t.Row(handOver, one.Count, one.P50, one.P99, one.Max, many.Count, many.P50, many.P99, many.Max)
	}
	for _, handOver := range handOvers {
		for _, part := range []string{partOne, partMany} {
			if s := r.Reactions[handOver].of(part); s.P99 > r.reactionTarget(handOver, part) {
				for _, slow := range s.Slowest {
					t.Row("  slowest, " + partNames[part] + ": " + handOver + ": " + slow)
				}
			}
		}
	}
}

// printInstallation prints the cost of one installation, and the least that a program costs that watches the same kinds.
func (r *report) printInstallation(t *results.Table) {
	t.Row("")
	t.Row("ONE INSTALLATION, 3 + 2 hosts", "CPU seconds", "peak memory, MiB", "of it not in the program file", "requests to the hub")
	requests := r.installationRequests()
	for _, name := range managers.Names {
		m := r.manager(name)
		t.Row(name, m.One.CPUSeconds, m.One.PeakMiB, m.One.AnonymousMiB, requests[name])
		t.Row("  a program that only watches", m.Floor.CPUSeconds, m.Floor.PeakMiB, m.Floor.AnonymousMiB)
	}
	t.Row("both", r.oneInstallation(), "", "", results.Total(requests))
}

func (r *report) printCosts(t *results.Table) {
	t.Row("")
	t.Row("COST", "one cluster", fmt.Sprintf("%d at once", r.Clusters))
	t.Row("seconds from apply to Available", r.SecondsToAvailable.One, r.SecondsToAvailable.Many)
	t.Row(fmt.Sprintf("%d processors busy, %%", r.Machine.Processors), r.Machine.BusyPercent.One, r.Machine.BusyPercent.Many)
	for _, name := range managers.Names {
		m := r.manager(name)
		t.Row(name+": CPU seconds (start: "+fmt.Sprint(m.StartCPUSeconds)+")", m.One.CPUSeconds, m.Many.CPUSeconds)
		t.Row(name+": peak memory, MiB", m.One.PeakMiB, m.Many.PeakMiB)
		t.Row(name+": memory without the program file, MiB", m.One.AnonymousMiB, m.Many.AnonymousMiB)
	}
	t.Row("both managers: CPU seconds of each cluster", "", r.perCluster())
	t.Row("installed clusters in an hour", "", r.hourly())
	t.Row("registry look-ups, one release by version", r.Registry.ByVersion, r.Registry.ManyByVersion)
	t.Row("registry look-ups, release by digest", r.Registry.ByDigest)
	if sites := r.AtOnce.Sites; len(sites) > 0 {
		t.Row("requests of both managers to the hub, for each cluster", "", r.AtOnce.each())
		t.Row("requests to each cluster, p50 and max", "", results.Nearest(sites, 0.5), results.Nearest(sites, 1))
	}
}

// printRequests prints the most expensive run of each phase.
func (r *report) printRequests(t *results.Table) {
	t.Row("")
	t.Row("PHASE, one cluster", "n", "s, p50", "s, max", "requests to the hub:", "", "", "new watches", "to the cluster", "new watches")
	t.Row("", "", "", "", env.Bootstrap, env.ControlPlane, "both")
	for _, p := range r.Phases {
		worst, times := p.worst(), p.seconds()
		bootstrap, controlPlane := worst.Managers[env.Bootstrap], worst.Managers[env.ControlPlane]
		t.Row(p.Name, len(p.Runs), results.Nearest(times, 0.5), results.Nearest(times, 1), bootstrap.Total, controlPlane.Total,
			worst.hub(), bootstrap.Watches+controlPlane.Watches,
			p.mostAtSite(), worst.Site.Watches)
	}
	for _, p := range r.Phases {
		printKinds(t, p.Name, p.worst())
	}
}

// printKinds prints the requests of a run by verb and resource.
func printKinds(t *results.Table, phase string, run phaseRun) {
	bootstrap, controlPlane, site := run.Managers[env.Bootstrap].By, run.Managers[env.ControlPlane].By, run.Site.By
	kinds := results.Keys(bootstrap, controlPlane, site)
	if len(kinds) == 0 {
		return
	}
	t.Row("")
	t.Row(phase, env.Bootstrap, env.ControlPlane, "both", "to the cluster")
	for _, kind := range kinds {
		t.Row("  "+kind, bootstrap[kind], controlPlane[kind], bootstrap[kind]+controlPlane[kind], site[kind])
	}
}

// printUnmatched prints the findings that are in no figure.
func (r *report) printUnmatched(t *results.Table) {
	t.Row("")
	t.Row("IN NO FIGURE")
	for _, group := range []struct {
		what  string
		names []string
	}{{withoutCause, r.Unexplained}, {withoutAct, r.Unanswered}, {neverSeen, r.Unseen}} {
		t.Row(group.what, len(group.names))
		for _, name := range group.names {
			t.Row("  " + name)
		}
	}
}
