package main

import (
	"cmp"
	"math"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// anchor is the number of clusters for which the targets are set.
const anchor = 3500

// limit is a target for any number of clusters: what a process needs by itself, and the same for each cluster. The line
// goes through what is set for anchor; the base is what a process needs without clusters, on the safe side.
type limit struct{ base, atAnchor float64 }

// at is the target for a number of clusters.
func (l limit) at(clusters int) float64 {
	return l.base + (l.atAnchor-l.base)*float64(clusters)/anchor
}

// The targets. Memory is the peak of the resident set, which is what a container is killed for.
var (
	memoryLimits = map[string]limit{ // MiB
		env.ControlPlane: {base: 90, atAnchor: 400},
		env.Bootstrap:    {base: 80, atAnchor: 256},
	}
	goroutineLimit = limit{base: 600, atAnchor: 40000}
	quietLimit     = limit{base: 5, atAnchor: 60} // seconds
	// polledIdleLimit is idleLimit where clusters are polled over HTTP/1.1, each once a minute.
	polledIdleLimit = limit{base: 0.45, atAnchor: 25}
	// CPU seconds of both managers in a minute; beside 200 clusters, of which nothing is asked, 0.06 to 0.48 were measured
	idleLimit = limit{base: 0.45, atAnchor: 1}
)

const (
	// foreignMemory is what all that is not ours may cost a manager, in MiB, with -foreign=1.
	foreignMemory = 64
	// beyond is by how much a resident set is larger than the limit that Go is given, in MiB: by the pages of the
	// program file, which Go's runtime does not count, and for a moment by what it allocates while it collects.
	beyond = 60
	// reactionFactor and freeReaction are what a reaction may take: so many times what a single write takes until it is
	// seen, or so many milliseconds where processors are free.
	reactionFactor, freeReaction = 2, 250
)

// memoryLimit is what a manager may use, in MiB.
func (o options) memoryLimit(name string) float64 {
	return round(memoryLimits[name].at(o.own()) + foreignMemory*o.foreign)
}

// idleLimit is what an idle minute may cost, in CPU seconds.
func (o options) idleLimit() limit {
	if o.http1 {
		return polledIdleLimit
	}
	return idleLimit
}

// own is the number of clusters that the measured managers reconcile.
func (o options) own() int {
	return (o.clusters + max(o.shards, 1) - 1) / max(o.shards, 1)
}

// judge compares with the targets.
func (r *report) judge(o options) {
	r.Targets = nil
	add := func(what string, found, limit float64) {
		r.Targets.Add(what, found, limit, o.margin)
	}
	for _, name := range managers {
		first, second := r.Start.Managers[name], r.Restart.Managers[name]
		add(name+": peak memory, MiB", r.peak(name), o.memoryLimit(name))
		add(name+": goroutines", float64(max(first.Goroutines, second.Goroutines)), math.Round(goroutineLimit.at(o.own())))
		add(name+": writes of a restart", float64(second.Writes), 0)
		add(name+": requests of a restart that ask an object again", float64(second.Repeated), 0)
	}
	add("quiet after a start, s", r.Start.QuietSeconds, quietLimit.at(o.own()))
	add("quiet after a restart, s", r.Restart.QuietSeconds, quietLimit.at(o.own()))
	minutes := r.Idle.Seconds / time.Minute.Seconds()
	add("CPU seconds of an idle time", round2(r.Idle.CPUSeconds[env.ControlPlane]+r.Idle.CPUSeconds[env.Bootstrap]),
		o.idleLimit().at(o.own())*minutes)
	add("requests of an idle time to the hub", float64(total(r.Idle.Hub)), 0)
	if !o.http1 {
		add("requests of an idle time to the clusters", float64(r.Idle.SiteRequests), 0)
	}
	for _, name := range reactionNames {
		if q, measured := r.Reactions[name]; measured {
			add(name+", p99, ms", q.P99, max(freeReaction, reactionFactor*r.Reactions[plainWrite].P99))
		}
	}
}

// total is the sum of what was counted.
func total(counts map[string]int) (sum int) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

func round2(value float64) float64 { return math.Round(value*100) / 100 }

// memoryFlag is the limit that a manager runs with: the one that was given, else what leads to its target.
func (o options) memoryFlag(name string) float64 {
	return cmp.Or(float64(o.memory[name]), round(o.memoryLimit(name)-beyond))
}
