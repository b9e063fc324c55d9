package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// pollInterval is how often a cluster is read that cannot be watched over one connection: something between speaks only HTTP/1.1, over which each watch is a connection
	// with buffers and goroutines of its own (200 KiB a cluster instead of 40). It is well below facts.GracePeriod.
	pollInterval = time.Minute
	// pollUrgent is pollInterval of a cluster that is installed or upgraded, or awaits hosts: people, or kubelets without certificate, wait for what changes.
	pollUrgent = 10 * time.Second
)

// setPolled records whether the cluster is polled. The watches of the other mode end, and with them what could not be watched. The caller holds the lock.
func (l *connection) setPolled(polled bool) {
	if l.polled == polled {
		return
	}
	l.endWatches()
	l.polled = polled
	for _, r := range resources {
		l.unread.Delete(watchOf(r))
		l.unreadOnDemand.Delete(watchOf(r))
	}
}

// nextPoll returns when to read a polled cluster again.
func (l *connection) nextPoll(installed bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !installed || l.awaiting || l.poolsMatter() {
		return wait.Jitter(pollUrgent, spread)
	}
	return wait.Jitter(pollInterval, spread)
}

// restUnwanted makes what is read on demand, and wanted no more, rest, as the end of its watch does elsewhere. The caller holds the lock.
func (l *connection) restUnwanted() {
	for _, r := range resources {
		if !l.wants(r) {
			l.onDemand.Delete(r.name)
		}
	}
}
