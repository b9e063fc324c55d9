package reconcile

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// maxStartTimes bounds the keys of a StartTimes. It is far above the number of states that last at one time;
// an evicted key starts again.
const maxStartTimes = 8192

// StartTimes remembers since when states last that no object records. A restart of the manager forgets them.
type StartTimes[K comparable] struct {
	clock clock.PassiveClock
	since *lru.Cache[K, time.Time]
}

// NewStartTimes returns an empty StartTimes.
func NewStartTimes[K comparable](c clock.PassiveClock) *StartTimes[K] {
	return &StartTimes[K]{clock: c, since: lru.New[K, time.Time](maxStartTimes)}
}

// Since returns when the state of a key started, and starts it now if it has not been started since the last
// Clear.
func (l *StartTimes[K]) Since(key K) time.Time {
	if since, ok := l.since.Get(key); ok {
		return since
	}
	now := l.clock.Now()
	l.since.Add(key, now)
	return now
}

// Resume starts the state of a key at an earlier time, unless it has been started since the last Clear.
func (l *StartTimes[K]) Resume(key K, since time.Time) {
	if _, started := l.since.Get(key); !started {
		l.since.Add(key, since)
	}
}

// Clear records that the state of a key has ended.
func (l *StartTimes[K]) Clear(key K) { l.since.Remove(key) }
