package controlplane

import (
	"cmp"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// inspectionInterval is how far apart looks at the etcd of one cluster are, whatever happens there.
	inspectionInterval = 2 * time.Second
	// initialInspectionDelay is after what time etcd is looked at again, for it cannot be watched; the time doubles up
	// to maxInspectionDelay as long as nothing changes.
	initialInspectionDelay, maxInspectionDelay = 5 * time.Second, time.Minute
	// maxInspections is how many clusters are looked at: a member that is away takes seconds, and others want to be reconciled.
	maxInspections = 10
	// deferrableTurn is the shortest time until a deferrable inspection tries again that found no free place.
	deferrableTurn = 15 * time.Second
	// rememberedInspections is more than there are clusters of which a Machine waits.
	rememberedInspections = 4096
)

// paceFrom is a pace that begins with a time, which doubles up to maxInspectionDelay.
func paceFrom(first time.Duration) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Cap: maxInspectionDelay, Steps: int(maxInspectionDelay / first)}
}

// inspections is the pace at which the etcd of clusters is looked at.
type inspections struct {
	now func() time.Time
	// last is the last look that found something to wait for.
	last   *lru.Cache[inspectionKey, inspection]
	delays *flowcontrol.Backoff
	// background are the questions of checkInBackground, members the inspections for EtcdMemberHealthy.
	background *lru.Cache[string, question]
	members    *lru.Cache[types.UID, memberInspection]
	free       *semaphore.Weighted
	// upgrades is free for those that are looked at for another reason than etcd.
	upgrades *semaphore.Weighted
	// jitter lengthens a time by a random share of up to a factor, as [wait.Jitter].
	jitter func(time.Duration, float64) time.Duration
}

// turn returns when a cluster that found no free place tries again. After an upgrade of the manager on a large hub all
// clusters wait at the same time: without jitter they all try again together. That of a deferrable inspection is later,
// so that Machines and upgrades that wait come first.
func (l *inspections) turn(deferrable bool) time.Duration {
	if deferrable {
		return l.jitter(deferrableTurn, 1)
	}
	return l.jitter(inspectionInterval, 1)
}

// inspectionTasks are those that etcd is looked at for.
var inspectionTasks = []status.Task{status.HostRelease, status.Remediation, status.ScaleUp, status.ScaleDown}

// inspectionKey is for whom, and for what, etcd is looked at.
type inspectionKey struct {
	uid  types.UID
	task status.Task
}

// inspection is one that found something to wait for.
type inspection struct {
	at              time.Time
	reason, message string
	// failure is what was logged, in our own words: errors have ports and times in them.
	failure string
}

// injected is a clock of which only the time is asked.
type injected struct {
	clock.RealClock

	now func() time.Time
}

// Now is the time.
func (c injected) Now() time.Time { return c.now() }

func newInspections(now func() time.Time) *inspections {
	l := &inspections{
		now:        now,
		last:       lru.New[inspectionKey, inspection](rememberedInspections),
		delays:     flowcontrol.NewBackOff(initialInspectionDelay, maxInspectionDelay),
		background: lru.New[string, question](rememberedInspections),
		members:    lru.New[types.UID, memberInspection](rememberedInspections),
		free:       semaphore.NewWeighted(maxInspections),
		upgrades:   semaphore.NewWeighted(maxInspections),
		jitter:     wait.Jitter,
	}
	l.delays.Clock = injected{now: now}
	return l
}

// before is the last look for a task that found something to wait for; zero: there was none, or something was done since.
func (l *inspections) before(key inspectionKey) inspection {
	last, _ := l.last.Get(key)
	return last
}

// found notes what a look found to wait for, and says when to look again: the later, the longer it has been the same.
// Looks that come sooner, because something happened, do not change that.
func (l *inspections) found(of inspectionKey, seen inspection) time.Duration {
	key := func(found inspection) string {
		return strings.Join([]string{string(of.uid), string(of.task), found.reason, found.message}, " ")
	}
	if last := l.before(of); key(last) != key(seen) {
		l.delays.DeleteEntry(key(last))
	}
	seen.at = l.now()
	l.last.Add(of, seen)
	if !l.delays.IsInBackOffSinceUpdate(key(seen), seen.at) {
		l.delays.Next(key(seen), seen.at)
	}
	l.delays.GC()
	return l.delays.Get(key(seen))
}

// done notes that something was done, or that nothing is waited for: etcd may be looked at again at once.
func (l *inspections) done(uid types.UID, tasks ...status.Task) {
	for _, task := range tasks {
		l.last.Remove(inspectionKey{uid, task})
	}
}

// etcdInspection is what was seen of etcd, or why nothing was.
type etcdInspection struct {
	etcd *facts.Etcd
	err  error
}

// mayInspect reports whether etcd may be looked at now, for a task. If not, what was found last is told once more. Else
// the look ends with the function.
func (r *Reconciler) mayInspect(s *scope, task status.Task) (end func(), may bool) {
	free, busy := r.inspections.free, inspection{reason: controlplanev1.WaitingForEtcdReason, message: "waiting to ask etcd, for many clusters are asked at this time"}
	if task == status.Upgrade {
		free, busy = r.inspections.upgrades, inspection{reason: controlplanev1.UpgradeInProgressReason, message: "waiting to look at the cluster, after others"}
	}
	last := r.inspections.before(inspectionKey{s.stored.UID, task})
	left := inspectionInterval - r.now().Sub(last.at)
	switch {
	case left > 0:
	case free.TryAcquire(1):
		s.looking = task
		return func() { s.looking = ""; free.Release(1) }, true
	default:
		left = r.inspections.turn(false)
	}
	if last.reason == "" {
		last = busy
	}
	s.found.Block(task, last.reason, last.message)
	s.again.In(left)
	return nil, false
}

// block says why a host is not touched, or what else etcd was looked at for is not done, and looks again where no event
// tells that it may be.
func (r *Reconciler) block(s *scope, by decision.Blocker) { r.blockFor(s, by, "") }

// blockFor is block, also for something that failed.
func (r *Reconciler) blockFor(s *scope, by decision.Blocker, failure string) {
	message := bound.Message(by.Message)
	task := cmp.Or(s.looking, status.HostRelease)
	s.found.Block(task, by.Reason, message)
	if s.looking == "" {
		r.inspections.done(s.stored.UID, task)
		return
	}
	left := r.inspections.found(inspectionKey{s.stored.UID, task}, inspection{reason: by.Reason, message: message, failure: failure})
	if !by.Watched {
		s.again.In(left)
	}
}
