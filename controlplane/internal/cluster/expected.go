package cluster

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ExpectHosts sets whether hosts of a cluster are expected to join or return. Some resources matter only
// then. Their watches take memory, and most clusters do not need them for months.
func (c *Clusters) ExpectHosts(cluster client.ObjectKey, needed bool) {
	if conn := c.lookup(cluster); conn != nil && conn.expectHosts(needed) {
		conn.requestVisit()
	}
}

// expectHosts reports whether the cluster must be visited.
func (c *connection) expectHosts(needed bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	begins := needed && !c.expecting
	c.expecting = needed
	if !needed || c.watching == nil {
		return false
	}
	return c.resume() || begins // some resources are read only while hosts are expected
}

// hostsExpected reports whether hosts are expected. The caller holds the lock.
func (c *connection) hostsExpected() bool { return c.expecting }

// resume makes the next visit read and watch the needed resources whose watch has ended. It reports whether
// there are any. The caller holds the lock.
func (c *connection) resume() (due bool) {
	for _, r := range resources {
		if r.demand != nil && c.needs(r) && c.watching.Has(r.name) && !c.onDemand.Has(r.name) {
			c.watching.Delete(r.name)
			due = true
		}
	}
	return due
}

// isUnneeded reports whether a watch must not start because the resource is not needed.
func (w *watcher) isUnneeded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || w.needs(w.resource) {
		return false
	}
	w.onDemand.Delete(w.resource.name)
	return true
}

// needs reports whether a resource must be watched. The caller holds the lock.
func (c *connection) needs(r resource) bool { return r.demand == nil || r.demand(c) }

// due reports whether a resource that is not known must be read. The caller holds the lock.
func (c *connection) due(r resource) bool {
	return c.needs(r) || !r.onlyIfNeeded && c.stop != nil && c.clock.Now().Sub(c.since) >= settleTime
}

// fresh reports whether the state of a resource is current. The caller holds the lock.
func (c *connection) fresh(r resource) bool {
	return c.watching.Has(r.name) && !(c.polled && c.needs(r)) && (r.outdated == nil || !r.outdated(c))
}
