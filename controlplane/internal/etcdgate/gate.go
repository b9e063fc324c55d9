// Package etcdgate decides when the etcd of a workload cluster is inspected: how often, for which task, and for how many
// clusters at a time. No watch reports the state of etcd. The package remembers the result of the last inspection, so
// that a condition stays while etcd is not inspected.
package etcdgate

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// Interval is the shortest time between two inspections of the etcd of one cluster.
	Interval = 2 * time.Second
	// InitialDelay is the time after which etcd is inspected again. It doubles up to MaxDelay while the result does not
	// change.
	InitialDelay = 5 * time.Second
	// MaxDelay is the longest time between two inspections of a task.
	MaxDelay = time.Minute
	// DeferrableTurn is the shortest time until a deferrable inspection tries again after it found no free slot.
	DeferrableTurn = 15 * time.Second
	// MaxInspections is the number of clusters that are inspected at a time. A member that does not answer delays an
	// inspection by seconds, in which other control planes are not reconciled.
	MaxInspections = 10
	// remembered is the size of the caches: more than the clusters of one hub that wait for etcd.
	remembered = 4096
)

// inspectedFor lists the tasks for which etcd is inspected.
var inspectedFor = []tasks.Task{tasks.HostRelease, tasks.Remediation, tasks.ScaleUp, tasks.ScaleDown}

// Observer reads the etcd of a workload cluster.
type Observer interface {
	Observe(ctx context.Context, cluster client.ObjectKey) (workload.Etcd, error)
}

// Gate lets the steps of a reconcile inspect etcd. It is safe for concurrent use.
type Gate struct {
	etcds Observer
	clock clock.Clock
	// Jitter lengthens a time by a random share of up to a factor, as [wait.Jitter].
	Jitter func(time.Duration, float64) time.Duration
	// last holds the last inspection of each task that found a blocker.
	last   *lru.Cache[key, result]
	delays *reconcile.Backoff
	// checks holds the checks of InBackground, members the results of InspectMembers.
	checks  *lru.Cache[string, check]
	members *lru.Cache[types.UID, MemberInspection]
	// free limits the inspections of etcd, upgrades those of ClusterVersions.
	free, upgrades *semaphore.Weighted
}

// key identifies a control plane, and the task for which its etcd is inspected.
type key struct {
	uid  types.UID
	task tasks.Task
}

// result is the result of an inspection that found a blocker.
type result struct {
	at              time.Time
	reason, message string
	// failure describes the logged error without ports and times, so that equal failures compare as equal.
	failure string
}

// New returns a Gate without results of earlier inspections.
func New(etcds Observer, c clock.Clock) *Gate {
	return &Gate{
		etcds:    etcds,
		clock:    c,
		Jitter:   wait.Jitter,
		last:     lru.New[key, result](remembered),
		delays:   reconcile.NewBackoff(c, InitialDelay, MaxDelay),
		checks:   lru.New[string, check](remembered),
		members:  lru.New[types.UID, MemberInspection](remembered),
		free:     semaphore.NewWeighted(MaxInspections),
		upgrades: semaphore.NewWeighted(MaxInspections),
	}
}

// BackoffFrom returns a backoff that starts at a delay and doubles up to MaxDelay.
func BackoffFrom(first time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Cap: MaxDelay, Steps: int(MaxDelay / first)}
}

// turn returns the time after which a cluster that found no free slot tries again. After an upgrade of the manager on a
// large hub all clusters wait at the same time: without jitter they would all try again together. A deferrable
// inspection tries later, so that waiting Machines and upgrades come first.
func (g *Gate) turn(deferrable bool) time.Duration {
	if deferrable {
		return g.Jitter(DeferrableTurn, 1)
	}
	return g.Jitter(Interval, 1)
}

// Begin begins an inspection for a task. It returns nil when the task has to wait: then it reports the result of the last
// inspection again.
func (g *Gate) Begin(s *scope.Scope, task tasks.Task) *Inspection {
	free, busy := g.free, result{
		reason:  controlplanev1.WaitingForEtcdReason,
		message: "Waiting to inspect etcd: the etcd of many other clusters is being inspected",
	}
	if task == tasks.Upgrade {
		free, busy = g.upgrades, result{
			reason:  controlplanev1.UpgradeInProgressReason,
			message: "Waiting to read the ClusterVersion: many other clusters are being read",
		}
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

// Block reports a blocker of the release of a host that is known without an inspection.
func (g *Gate) Block(s *scope.Scope, by decision.Blocker) {
	s.Found.Block(tasks.HostRelease, by.Reason, bound.Message(by.Message))
	g.Done(s, tasks.HostRelease)
}

// Done records that tasks have no blocker any more, or that etcd was changed. Etcd may then be inspected again at once.
// Without tasks it applies to all tasks.
func (g *Gate) Done(s *scope.Scope, done ...tasks.Task) {
	if len(done) == 0 {
		done = inspectedFor
	}
	for _, task := range done {
		g.last.Remove(key{s.Stored.UID, task})
	}
}

// record records the result of an inspection and returns the time until the next inspection. The time grows while the
// result does not change. An inspection that an event triggered earlier neither prolongs the time nor restarts it.
func (g *Gate) record(of key, found result) time.Duration {
	id := func(r result) string {
		return strings.Join([]string{string(of.uid), string(of.task), r.reason, r.message}, " ")
	}
	if last, _ := g.last.Get(of); id(last) != id(found) {
		g.delays.Reset(id(last))
	}
	found.at = g.clock.Now()
	g.last.Add(of, found)
	return g.delays.Record(id(found))
}
