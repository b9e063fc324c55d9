// Package etcdgate decides when the etcd of a workload cluster is inspected, which no watch reports: how often, for
// which task, and for how many clusters at a time. It remembers what the last inspection found, so that a condition
// stays while etcd is not inspected.
package etcdgate

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// Interval is the shortest time between two inspections of the etcd of one cluster.
	Interval = 2 * time.Second
	// InitialDelay is the time after which etcd is inspected again; it doubles up to MaxDelay while the result does not change.
	InitialDelay, MaxDelay = 5 * time.Second, time.Minute
	// DeferrableTurn is the shortest time until a deferrable inspection tries again that found no free place.
	DeferrableTurn = 15 * time.Second
	// MaxInspections is the number of clusters that are inspected at a time: a member that does not answer takes
	// seconds, in which other control planes are not reconciled.
	MaxInspections = 10
	// remembered is more than the clusters of one hub that wait for etcd.
	remembered = 4096
)

// tasks are those for which etcd is inspected.
var tasks = []status.Task{status.HostRelease, status.Remediation, status.ScaleUp, status.ScaleDown}

// Observer reads the etcd of a workload cluster.
type Observer interface {
	Observe(ctx context.Context, cluster client.ObjectKey) (facts.Etcd, error)
}

// Gate lets the steps of a reconcile inspect etcd. It is safe for concurrent use.
type Gate struct {
	etcds Observer
	clock clock.Clock
	// Jitter lengthens a time by a random share of up to a factor, as [wait.Jitter].
	Jitter func(time.Duration, float64) time.Duration
	// started is the time from which this process has inspected etcd.
	started time.Time
	// last is the last inspection that found something to wait for.
	last   *lru.Cache[key, result]
	delays *flowcontrol.Backoff
	// checks are those of InBackground, members those of InspectMembers.
	checks  *lru.Cache[string, check]
	members *lru.Cache[types.UID, MemberInspection]
	// free limits the inspections of etcd, upgrades those of ClusterVersions.
	free, upgrades *semaphore.Weighted
}

// key identifies a control plane, and the task for which its etcd is inspected.
type key struct {
	uid  types.UID
	task status.Task
}

// result is that of an inspection which found something to wait for.
type result struct {
	at              time.Time
	reason, message string
	// failure is what was logged, in our own words: errors contain ports and times.
	failure string
}

// New returns a Gate that remembers nothing.
func New(etcds Observer, c clock.Clock) *Gate {
	g := &Gate{
		etcds:    etcds,
		clock:    c,
		Jitter:   wait.Jitter,
		started:  c.Now(),
		last:     lru.New[key, result](remembered),
		delays:   flowcontrol.NewBackOff(InitialDelay, MaxDelay),
		checks:   lru.New[string, check](remembered),
		members:  lru.New[types.UID, MemberInspection](remembered),
		free:     semaphore.NewWeighted(MaxInspections),
		upgrades: semaphore.NewWeighted(MaxInspections),
	}
	g.delays.Clock = c
	return g
}

// BackoffFrom starts at a delay, which doubles up to MaxDelay.
func BackoffFrom(first time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Cap: MaxDelay, Steps: int(MaxDelay / first)}
}

// turn returns when a cluster that found no free place tries again. After an upgrade of the manager on a large hub all
// clusters wait at the same time: without jitter they all try again together. A deferrable inspection tries later, so
// that Machines and upgrades that wait come first.
func (g *Gate) turn(deferrable bool) time.Duration {
	if deferrable {
		return g.Jitter(DeferrableTurn, 1)
	}
	return g.Jitter(Interval, 1)
}

// Begin begins an inspection for a task. It returns nil when the task has to wait: it then reports again what the last inspection found.
func (g *Gate) Begin(s *scope.Scope, task status.Task) *Inspection {
	free, busy := g.free, result{reason: controlplanev1.WaitingForEtcdReason, message: "waiting to ask etcd, for many clusters are asked at this time"}
	if task == status.Upgrade {
		free, busy = g.upgrades, result{reason: controlplanev1.UpgradeInProgressReason, message: "waiting to look at the cluster, after others"}
	}
	last, _ := g.last.Get(key{s.Stored.UID, task})
	left := Interval - g.clock.Now().Sub(last.at)
	switch {
	case left > 0:
	case free.TryAcquire(1):
		return &Inspection{gate: g, scope: s, task: task, release: func() { free.Release(1) }}
	default:
		left = g.turn(false)
	}
	if last.reason == "" {
		last = busy
	}
	s.Found.Block(task, last.reason, last.message)
	s.Again.In(left)
	return nil
}

// Block reports why a host is not released where that is known without an inspection.
func (g *Gate) Block(s *scope.Scope, by decision.Blocker) {
	s.Found.Block(status.HostRelease, by.Reason, bound.Message(by.Message))
	g.Done(s, status.HostRelease)
}

// Done records that nothing is waited for, or that etcd was changed: it may be inspected again at once, for all tasks if none is named.
func (g *Gate) Done(s *scope.Scope, done ...status.Task) {
	if len(done) == 0 {
		done = tasks
	}
	for _, task := range done {
		g.last.Remove(key{s.Stored.UID, task})
	}
}

// record records the result of an inspection and returns the time until the next one: the longer, the longer the result
// has been the same. An inspection that an event triggered earlier does not prolong it.
func (g *Gate) record(of key, found result) time.Duration {
	id := func(r result) string {
		return strings.Join([]string{string(of.uid), string(of.task), r.reason, r.message}, " ")
	}
	if last, _ := g.last.Get(of); id(last) != id(found) {
		g.delays.DeleteEntry(id(last))
	}
	found.at = g.clock.Now()
	g.last.Add(of, found)
	if !g.delays.IsInBackOffSinceUpdate(id(found), found.at) {
		g.delays.Next(id(found), found.at)
	}
	g.delays.GC()
	return g.delays.Get(id(found))
}
