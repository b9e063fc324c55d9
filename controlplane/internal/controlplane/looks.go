package controlplane

import (
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// looksApart is how far apart looks at the etcd of one cluster are, whatever happens there.
	looksApart = 2 * time.Second
	// firstLook is after what time etcd is looked at again, for it cannot be watched; the time doubles up to lastLook as long as nothing changes.
	firstLook, lastLook = 5 * time.Second, time.Minute
	// quorumLook is how often it is asked whether etcd has its quorum while Cluster API drains a Machine, which hangs without.
	quorumLook = reconcile.Long
	// looksAtOnce is how many clusters are looked at: a member that is away takes seconds, and others want to be reconciled.
	looksAtOnce = 10
	// rememberedLooks is more than there are clusters of which a Machine waits.
	rememberedLooks = 4096
)

// looks is the pace at which the etcd of clusters is looked at.
type looks struct {
	now func() time.Time
	// last is the last look that found something to wait for, by UID of the control plane.
	last   *lru.Cache
	delays *flowcontrol.Backoff
	free   *semaphore.Weighted
}

// look is one that found something to wait for.
type look struct {
	at              time.Time
	reason, message string
	// failure is the error that was logged.
	failure string
}

// injected is a clock of which only the time is asked.
type injected struct {
	clock.RealClock

	now func() time.Time
}

// Now is the time.
func (c injected) Now() time.Time { return c.now() }

func newLooks(now func() time.Time) *looks {
	l := &looks{now: now, last: lru.New(rememberedLooks), delays: flowcontrol.NewBackOff(firstLook, lastLook), free: semaphore.NewWeighted(looksAtOnce)}
	l.delays.Clock = injected{now: now}
	return l
}

// before is the last look at a cluster that found something to wait for; zero: there was none, or something was done since.
func (l *looks) before(uid types.UID) look {
	found, _ := l.last.Get(uid)
	last, _ := found.(look)
	return last
}

// found notes what a look found to wait for, and says when to look again: the later, the longer it has been the same. Looks that come sooner, because something
// happened, do not change that.
func (l *looks) found(uid types.UID, seen look) time.Duration {
	key := func(of look) string { return strings.Join([]string{string(uid), of.reason, of.message}, " ") }
	if last := l.before(uid); key(last) != key(seen) {
		l.delays.DeleteEntry(key(last))
	}
	seen.at = l.now()
	l.last.Add(uid, seen)
	if !l.delays.IsInBackOffSinceUpdate(key(seen), seen.at) {
		l.delays.Next(key(seen), seen.at)
	}
	l.delays.GC()
	return l.delays.Get(key(seen))
}

// done notes that something was done, or that nothing is waited for: etcd may be looked at again at once.
func (l *looks) done(uid types.UID) { l.last.Remove(uid) }

// mayLook tells whether etcd may be looked at now. If not, what was found last is told once more. Else the look ends with the function.
func (r *Reconciler) mayLook(s *scope) (end func(), may bool) {
	last := r.looks.before(s.stored.UID)
	left := looksApart - r.now().Sub(last.at)
	switch {
	case left > 0:
	case r.looks.free.TryAcquire(1):
		s.looking = true
		return func() { r.looks.free.Release(1) }, true
	default:
		left = looksApart
	}
	if last.reason == "" {
		last.reason, last.message = controlplanev1.WaitingForEtcdReason, "waiting to ask etcd, for many clusters are asked at this time"
	}
	s.found.Block(status.HostRelease, last.reason, last.message)
	s.again.In(left)
	return nil, false
}

// longestMessage is how much is told of what is waited for: names come from the cluster.
const longestMessage = 2048

// hold says why a host is not touched, and looks again where no event tells that it may be.
func (r *Reconciler) hold(s *scope, step removal.Step) { r.holdFor(s, step, "") }

// holdFor is hold, also for something that failed.
func (r *Reconciler) holdFor(s *scope, step removal.Step, failure string) {
	message := step.Message
	if step.Machine.Name != "" {
		message = "the host of Machine " + step.Machine.Name + " is not touched: " + message
	}
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + "..."
	}
	s.found.Block(status.HostRelease, step.Reason, message)
	if !s.looking {
		r.looks.done(s.stored.UID)
		return
	}
	left := r.looks.found(s.stored.UID, look{reason: step.Reason, message: message, failure: failure})
	if !step.Watched {
		s.again.In(left)
	}
}
