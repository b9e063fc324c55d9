package scale

import (
	"cmp"
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// anchor is the number of clusters for which the targets are set.
const anchor = 3500

// limit is a target for any number of clusters. It grows linearly from base, the need of a process without clusters, to
// the target for anchor.
type limit struct{ base, atAnchor float64 }

// at returns the target for a number of clusters.
func (l limit) at(clusters int) float64 {
	return l.base + (l.atAnchor-l.base)*float64(clusters)/anchor
}

// The targets. Memory is the peak of the resident set, on which the limit of a container acts.
var (
	memoryLimits = map[string]limit{ // MiB
		env.ControlPlane: {base: managers.BaseMemory[env.ControlPlane], atAnchor: 400},
		env.Bootstrap:    {base: managers.BaseMemory[env.Bootstrap], atAnchor: 256},
	}
	goroutineLimit = limit{base: 600, atAnchor: 40000}
	quietLimit     = limit{base: 5, atAnchor: 60} // seconds
	// polledIdleLimit replaces idleLimit with clusters that are polled over HTTP/1.1, each once a minute.
	polledIdleLimit = limit{base: 0.45, atAnchor: 25}
	// CPU seconds of both managers in a minute. With 200 idle clusters, 0.06 to 0.48 were measured.
	idleLimit = limit{base: 0.45, atAnchor: 1}
)

const (
	// foreignMemory is the memory of a manager for the foreign objects of -foreign=1, in MiB.
	foreignMemory = 64
	// beyond is the difference between a resident set and GOMEMLIMIT, in MiB. It has the pages of the program file, which
	// Go does not count, and allocations during a collection.
	beyond = 60
)

// memoryLimit returns the target of the memory of a manager, in MiB.
func (o options) memoryLimit(name string) float64 {
	return results.Round(memoryLimits[name].at(o.own()) + foreignMemory*o.foreign)
}

// idleLimit returns the target of an idle minute, in CPU seconds.
func (o options) idleLimit() limit {
	if o.http1 {
		return polledIdleLimit
	}
	return idleLimit
}

// own returns the number of clusters that the measured managers reconcile.
func (o options) own() int {
	return (o.Clusters + max(o.shards, 1) - 1) / max(o.shards, 1)
}

// judge compares the figures with the targets.
func (r *report) judge(o options) {
	r.Targets = nil
	add := func(what string, found, limit float64) {
		r.Targets.Add(what, found, limit, o.Margin)
	}
	for _, name := range managers.Names {
		first, second := r.Start.Managers[name], r.Restart.Managers[name]
		add(name+": peak memory, MiB", r.peak(name), o.memoryLimit(name))
		add(name+": goroutines", float64(max(first.Goroutines, second.Goroutines)), math.Round(goroutineLimit.at(o.own())))
		add(name+": writes of a restart", float64(second.Writes), 0)
		add(name+": repeated requests of a restart for an object", float64(second.Repeated), 0)
	}
	add("quiet after a start, s", r.Start.QuietSeconds, quietLimit.at(o.own()))
	add("quiet after a restart, s", r.Restart.QuietSeconds, quietLimit.at(o.own()))
	minutes := r.Idle.Seconds / time.Minute.Seconds()
	add("CPU seconds of an idle time", results.Round2(r.Idle.CPUSeconds[env.ControlPlane]+r.Idle.CPUSeconds[env.Bootstrap]),
		o.idleLimit().at(o.own())*minutes)
	add("requests of an idle time to the hub", float64(results.Total(r.Idle.Hub)), 0)
	if !o.http1 {
		add("requests of an idle time to the clusters", float64(r.Idle.SiteRequests), 0)
	}
	for _, name := range reactionNames {
		if q, measured := r.Reactions[name]; measured {
			add(name+", p99, ms", q.P99, results.ReactionLimit(r.Reactions[results.Reference].P99, 1))
		}
	}
}

// memoryFlag returns GOMEMLIMIT of a manager in MiB: its flag, or the value that leads to its target.
func (o options) memoryFlag(name string) float64 {
	return cmp.Or(float64(ptr.Deref(o.memory[name], 0)), results.Round(o.memoryLimit(name)-beyond))
}
