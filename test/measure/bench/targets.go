package bench

import (
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

// The targets, see also docs/scale.md.
const (
	// lookupsByVersion is the number of registry look-ups for each release given by version. A release given by digest
	// needs none.
	lookupsByVersion = 1
	// targetHour is the number of single-node clusters to install in an hour on hubProcessors processors. managersShare
	// is the share of both managers; the API server, etcd, assisted-service and other controllers need the rest.
	targetHour, hubProcessors, managersShare = 5000, 2, 0.5
)

// requestTarget is the limit of the requests of a phase: of both managers to the hub, in addition for each Machine, and
// to the cluster.
type requestTarget struct{ hub, each, site float64 }

// The limits of an installation are the measured numbers, see docs/scale.md. For five Machines, 54 of the requests make a
// write safe. They were added in November 2026, and raised the limit from 140 to 195:
//
//   - Before a host is bound, and before it is approved, three reads show that it still belongs to the cluster.
//   - Before the first write of an object, a read shows that no foreign object has its name.
//   - The infrastructure machine of each etcd member gets a protection.
var requestTargets = map[string]requestTarget{
	installation:   {hub: 45, each: 30, site: 75},
	idleTime:       {},
	upgraded:       {hub: 60, site: 120},
	workerAdded:    {hub: 60, site: 60},
	workerRemoved:  {hub: 40, site: 40},
	masterExchange: {hub: 120, site: 120},
	deletion:       {hub: 30, each: 15, site: 20},
}

// costTarget is the limit of what a manager costs for the installation of one HA cluster: CPU time in seconds, and peak
// memory in MiB.
type costTarget struct{ cpu, memory float64 }

var costTargets = map[string]costTarget{
	env.Bootstrap:    {cpu: 0.6, memory: 55},
	env.ControlPlane: {cpu: 0.6, memory: 55},
}

// atOnceTarget is the limit of each of several installations at once. They wait for processors, and a host whose wait lasts
// longer than reconcile.DeferralPeriod reports it.
var atOnceTarget = requestTarget{hub: 45, each: 37, site: 75}

func (t requestTarget) atHub(machines int) float64 { return t.hub + t.each*float64(machines) }

// successive are the hand-overs with several writes, each of which begins after the write before:
//
//   - The boot image is set before the name of the bootstrap data is published, for which the infrastructure provider
//     waits.
//   - An Agent is marked to need no cleanup before it is deleted, if the whole cluster is being deleted.
//   - A removal from etcd is recorded before the host is released.
//   - The image sets are deleted before the deletion of the control plane completes.
var successive = map[string]int{bootDataHandedOut: 2, agentReleased: 2, memberRemoved: 2, controlPlaneGone: 2}

// reactionTarget returns the limit of the 99th percentile of a reaction in a part, in milliseconds.
func (r *report) reactionTarget(handOver, part string) float64 {
	written := results.Reference
	if toAgents[handOver] {
		written = agentReference
	}
	return results.ReactionLimit(r.Reactions[written].of(part).P99, max(1, successive[handOver]))
}

// The findings that are in no figure. Their limit is zero.
const (
	withoutCause = "acts without a cause"
	withoutAct   = "causes without an act"
	neverSeen    = "hand-overs that were never seen"
)

// judge compares the figures with the targets.
func (r *report) judge(o options) {
	r.Targets = nil
	add := func(what string, found, limit float64) { r.Targets.Add(what, found, limit, o.Margin) }
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
		add("at once: requests to the hub for each cluster", r.AtOnce.each(), atOnceTarget.atHub(r.AtOnce.Machines))
		add("at once: requests to a cluster, max", float64(r.AtOnce.Sites[n-1]), atOnceTarget.site)
	}
	for _, name := range managers.Names {
		m := r.manager(name)
		if m.One.PeakMiB > 0 { // single clusters were not skipped
			add(name+": CPU seconds of one installation", m.One.CPUSeconds, costTargets[name].cpu)
			add(name+": peak memory of one installation, MiB", m.One.PeakMiB, costTargets[name].memory)
		}
		add(name+": peak memory, MiB", max(m.One.PeakMiB, m.Many.PeakMiB), managers.BaseMemory[name])
	}
	add("registry look-ups, one release by version", float64(max(r.Registry.ByVersion, r.Registry.ManyByVersion)), lookupsByVersion)
	add("registry look-ups, release by digest", float64(r.Registry.ByDigest), 0)
	if r.Sample == singleNode && r.Clusters > 0 {
		add("both managers: CPU seconds of each cluster", r.perCluster(), time.Hour.Seconds()*hubProcessors*managersShare/targetHour)
	}
}

// Judged implements [results.Report].
func (r *report) Judged() results.Targets { return r.Targets }
