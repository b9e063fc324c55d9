package cluster

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
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
	begins := needed && !c.state.HostsExpected
	c.state.HostsExpected = needed
	if !needed || c.watching == nil {
		return false
	}
	return c.resume() || begins // some resources are read only while hosts are expected
}

// resume makes the next visit read and watch the needed resources whose watch has ended. It reports whether
// there are any. The caller holds the lock.
func (c *connection) resume() (due bool) {
	for _, r := range objects.Resources {
		if r.Demand != nil && c.state.Needs(r) && c.watching.Has(r.Name) && !c.onDemand.Has(r.Name) {
			c.watching.Delete(r.Name)
			due = true
		}
	}
	return due
}

// isUnneeded reports whether a watch must not start because the resource is not needed.
func (w *watcher) isUnneeded() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || w.state.Needs(w.resource) {
		return false
	}
	w.onDemand.Delete(w.resource.Name)
	return true
}

// due reports whether a resource that is not known must be read. The caller holds the lock.
func (c *connection) due(r objects.Resource) bool {
	return c.state.Needs(r) || !r.OnlyIfNeeded && c.stop != nil && c.clock.Now().Sub(c.since) >= settleTime
}

// fresh reports whether a visit need not read a resource. The caller holds the lock.
func (c *connection) fresh(r objects.Resource) bool {
	return c.watching.Has(r.Name) && !(c.polled && c.state.Needs(r)) && (c.onDemand.Has(r.Name) || r.Outdated == nil || !r.Outdated(c.state))
}

// isCurrent reports whether the values of a resource that were read last are still those of the cluster. The
// caller holds the lock.
func (c *connection) isCurrent(r objects.Resource) bool {
	if r.Demand != nil { // without a watch the last value may be outdated
		return c.onDemand.Has(r.Name)
	}
	return c.watching.Has(r.Name) && !c.unread.Has(r.Name)
}

// resumePools reports whether the cluster must be visited for its pools. The caller holds the lock.
func (c *connection) resumePools(neededBefore bool) bool {
	if neededBefore || c.watching == nil || !c.state.NeedsPools() {
		return false
	}
	c.resume()
	return true
}

// RequirePools sets whether the MachineConfigPools of a cluster are needed although it is not being upgraded.
func (c *Clusters) RequirePools(cluster client.ObjectKey, needed bool) {
	conn := c.lookup(cluster)
	if conn == nil {
		return
	}
	conn.mu.Lock()
	neededBefore := conn.state.NeedsPools()
	conn.state.PoolsRequired = needed
	begins := conn.resumePools(neededBefore)
	conn.mu.Unlock()
	if begins {
		conn.requestVisit()
	}
}
