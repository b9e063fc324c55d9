package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// pollInterval is the interval at which a cluster without HTTP/2 is read. Over HTTP/1.1 each watch needs a
	// connection with buffers and goroutines, which is 200 KiB for a cluster instead of 40. The interval is well
	// below facts.GracePeriod.
	pollInterval = time.Minute
	// pollUrgent replaces pollInterval while the cluster is installed or upgraded, or expects hosts. Users, or
	// kubelets without certificates, then wait for changes.
	pollUrgent = 10 * time.Second
)

// setPolled records whether the cluster is polled. A change of the mode ends all watches, and clears their
// failures. The caller holds the lock.
func (conn *connection) setPolled(polled bool) {
	if conn.polled == polled {
		return
	}
	conn.endWatches()
	conn.polled = polled
	for _, r := range resources {
		conn.unread.Delete(watchOf(r))
		conn.unreadOnDemand.Delete(watchOf(r))
	}
}

// nextPoll returns the time until the next visit of a polled cluster.
func (conn *connection) nextPoll(installed bool) time.Duration {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if !installed || conn.expecting || conn.needsPools() {
		return wait.Jitter(pollUrgent, jitter)
	}
	return wait.Jitter(pollInterval, jitter)
}

// releaseUnneeded marks the resources that are not needed any more as not watched. For a watched cluster the
// end of the watch does this. The caller holds the lock.
func (conn *connection) releaseUnneeded() {
	for _, r := range resources {
		if !conn.needs(r) {
			conn.onDemand.Delete(r.name)
		}
	}
}
