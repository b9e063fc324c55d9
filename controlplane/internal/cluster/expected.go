package cluster

import "sigs.k8s.io/controller-runtime/pkg/client"

// Await says whether hosts of a cluster are awaited, which join or come back: only then is watched what matters to them alone. A watch takes memory, and most clusters go without for months.
func (c *Clusters) Await(cluster client.ObjectKey, needed bool) {
	if l := c.known(cluster); l != nil && l.await(needed) {
		l.again()
	}
}

// await reports whether the cluster has to be visited for it.
func (l *connection) await(needed bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	begins := needed && !l.awaiting
	l.awaiting = needed
	if !needed || l.watching == nil {
		return false
	}
	return l.resume() || begins // for what is read only while hosts are awaited
}

// hostsExpected reports whether hosts are awaited; the caller holds the lock.
func (l *connection) hostsExpected() bool { return l.awaiting }

// resume makes the next visit read, and watch, what is asked for again and rests, and reports whether there is anything; the caller holds the lock.
func (l *connection) resume() (due bool) {
	for _, r := range resources {
		if r.demand != nil && l.wants(r) && l.watching.Has(r.name) && !l.onDemand.Has(r.name) {
			l.watching.Delete(r.name)
			due = true
		}
	}
	return due
}

// rests reports whether a watch that is to begin, for the first time or again, does not, because nobody asks for it.
func (w *watcher) rests() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil || w.wants(w.resource) {
		return false
	}
	w.onDemand.Delete(w.resource.name)
	return true
}

// wants reports whether a resource is to be watched; the caller holds the lock.
func (l *connection) wants(r resource) bool { return r.demand == nil || r.demand(l) }

// due reports whether a resource is to be read, unless it is already; the caller holds the lock.
func (l *connection) due(r resource) bool {
	return l.wants(r) || !r.onlyIfNeeded && l.stop != nil && l.now().Sub(l.since) >= settled
}

// fresh reports whether what was read of a resource still counts; the caller holds the lock.
func (l *connection) fresh(r resource) bool {
	return l.watching.Has(r.name) && !(l.polled && l.wants(r)) && (r.outdated == nil || !r.outdated(l))
}
