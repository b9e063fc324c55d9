package reconcile

import (
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// remembered is far more than lasts at one time; what is forgotten begins again.
const remembered = 8192

// Lasting remembers since when something lasts that no object tells. A restart begins again.
type Lasting struct {
	now   func() time.Time
	since *lru.Cache[any, time.Time]
}

// NewLasting returns a memory of nothing.
func NewLasting(now func() time.Time) *Lasting {
	return &Lasting{now: now, since: lru.New[any, time.Time](remembered)}
}

// Since is when it was first asked since the last end.
func (l *Lasting) Since(key any) time.Time {
	if since, ok := l.since.Get(key); ok {
		return since
	}
	now := l.now()
	l.since.Add(key, now)
	return now
}

// Ended notes that it does not last any more.
func (l *Lasting) Ended(key any) { l.since.Remove(key) }
