package main

import (
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/results"
)

// What is to be reached. docs/scale.md has the same for people.
const (
	// Of a hundred reactions the slowest takes at most so many times what its writes take until they are seen, or so
	// long where processors are free.
	reactionFactor, freeReaction = 2, 250 * time.Millisecond
	// lookupsByVersion is how often the registry is asked for each release that is given by version; for one by digest it never is.
	lookupsByVersion = 1
	// targetHour is how many single-node clusters are to be installed in an hour on two processors, of which both
	// managers together may have one half: the other one is for the API server, etcd, assisted-service and the other
	// controllers.
	targetHour, hubProcessors, managersShare = 5000, 2, 0.5
)

// memoryTargets is what each manager may have at its peak, in MiB: what it needs on a hub without clusters, see [scale].
//
// [scale]: https://github.com/openshift-agent/cluster-api-provider-openshift-agent/blob/main/test/scale/targets.go
var memoryTargets = map[string]float64{env.ControlPlane: 90, env.Bootstrap: 80}

// requestTarget is how many requests a phase may cost: those of both managers to the hub, of which each Machine of the
// cluster may cost some, and those to the cluster itself.
type requestTarget struct{ hub, each, site float64 }

var requestTargets = map[string]requestTarget{
	installation:   {hub: 30, each: 22, site: 60},
	idleTime:       {},
	upgraded:       {hub: 60, site: 120},
	workerAdded:    {hub: 60, site: 60},
	workerRemoved:  {hub: 40, site: 40},
	masterExchange: {hub: 120, site: 120},
	deletion:       {hub: 30, each: 15, site: 20},
}

func (t requestTarget) atHub(machines int) float64 { return t.hub + t.each*float64(machines) }

// successive are the hand-overs of more than one write, of which each may begin only after the one before has
// succeeded. The infrastructure provider goes on with the bootstrap data: its name is told when the boot image is in
// place. An Agent is told first that nobody needs to clean up behind it, when the whole cluster goes, and what was
// removed from etcd is recorded before its host is released. A control plane goes when its image sets are gone.
var successive = map[string]int{bootDataHandedOut: 2, agentReleased: 2, memberRemoved: 2, controlPlaneGone: 2}

// reactionTarget is what the slowest of a hundred reactions of a part may take, in milliseconds.
func (r *report) reactionTarget(handOver, part string) float64 {
	written := reference
	if toAgents[handOver] {
		written = agentReference
	}
	return max(results.Milliseconds(freeReaction), reactionFactor*r.Reactions[written].of(part).P99*float64(max(1, successive[handOver])))
}

// What is in no figure, and must not be.
const (
	withoutCause = "acts without a cause"
	withoutAct   = "causes without an act"
	neverSeen    = "hand-overs that were never seen"
)

// judge compares with the targets.
func (r *report) judge(o options) {
	r.Targets = nil
	add := func(what string, found, limit float64) { r.Targets.Add(what, found, limit, o.margin) }
	add(withoutCause, float64(len(r.Unexplained)), 0)
	add(withoutAct, float64(len(r.Unanswered)), 0)
	add(neverSeen, float64(len(r.Unseen)), 0)
	for _, part := range []string{partOne, partMany} {
		for _, handOver := range handOvers {
			if s := r.Reactions[handOver].of(part); s.Count > 0 {
				add(partNames[part]+": "+handOver+", p99, ms", s.P99, r.reactionTarget(handOver, part))
			}
		}
	}
	for _, p := range r.Phases {
		target := requestTargets[p.Name]
		worst := p.worst()
		add(p.Name+": requests to the hub", float64(worst.hub()), target.atHub(worst.Machines))
		add(p.Name+": requests to the cluster", float64(p.mostAtSite()), target.site)
	}
	if n := len(r.AtOnce.Sites); n > 0 {
		target := requestTargets[installation]
		add("at once: requests to the hub for each cluster", r.AtOnce.each(), target.atHub(r.AtOnce.Machines))
		add("at once: requests to a cluster, max", float64(r.AtOnce.Sites[n-1]), target.site)
	}
	for _, name := range managers {
		m := r.manager(name)
		add(name+": peak memory, MiB", max(m.One.PeakMiB, m.Many.PeakMiB), memoryTargets[name])
	}
	add("registry look-ups, one release by version", float64(max(r.Registry.ByVersion, r.Registry.ManyByVersion)), lookupsByVersion)
	add("registry look-ups, release by digest", float64(r.Registry.ByDigest), 0)
	if r.Sample == singleNode && r.Clusters > 0 {
		add("both managers: CPU seconds of each cluster", r.perCluster(), time.Hour.Seconds()*hubProcessors*managersShare/targetHour)
	}
}

// missed reports whether a target was missed.
func (r *report) missed() bool { return r.Targets.Missed() }
