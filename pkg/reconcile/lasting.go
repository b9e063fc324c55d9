package reconcile

import (
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// maxStartTimes bounds the keys of a StartTimes. It is far above the number of states that last at one time;
// an evicted key starts again.
const maxStartTimes = 8192

// StartTimes remembers since when states last that no object records. A restart of the manager forgets them.
type StartTimes struct {
	now   func() time.Time
	since *lru.Cache[any, time.Time]
}

// NewStartTimes returns an empty StartTimes that reads the time from now.
func NewStartTimes(now func() time.Time) *StartTimes {
	return &StartTimes{now: now, since: lru.New[any, time.Time](maxStartTimes)}
}

// Since returns when the state of a key started, and starts it now if it has not been started since the last
// Clear.
func (l *StartTimes) Since(key any) time.Time {
	if since, ok := l.since.Get(key); ok {
		return since
	}
	now := l.now()
	l.since.Add(key, now)
	return now
}

// Clear records that the state of a key has ended.
func (l *StartTimes) Clear(key any) { l.since.Remove(key) }
