package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
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
func (c *connection) setPolled(polled bool) {
	if c.polled == polled {
		return
	}
	c.endWatches()
	c.polled = polled
	for _, r := range objects.Resources {
		c.unread.Delete(watchOf(r))
		c.unreadOnDemand.Delete(watchOf(r))
	}
}

// nextPoll returns the time until the next visit of a polled cluster.
func (c *connection) nextPoll(installed bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !installed || c.state.HostsExpected || c.state.NeedsPools() {
		return wait.Jitter(pollUrgent, jitter)
	}
	return wait.Jitter(pollInterval, jitter)
}

// releaseUnneeded marks the resources that are not needed any more as not watched. For a watched cluster the
// end of the watch does this. The caller holds the lock.
func (c *connection) releaseUnneeded() {
	for _, r := range objects.Resources {
		if !c.state.Needs(r) {
			c.onDemand.Delete(r.Name)
		}
	}
}
