package hosts

import (
	"context"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// cluster is the state that the hosts of one workload cluster share.
type cluster struct {
	key types.NamespacedName

	mu      sync.Mutex
	members map[*Host]member
	changed chan struct{}
}

// member is the state of a host that the others see.
type member struct {
	controlPlane, bootstrap bool
	// serving: the host serves the API of the cluster. ready: the Node is Ready. done: its installation is
	// finished. finalized: it reported to assisted-service that the cluster is complete.
	serving, ready, done, finalized bool
}

func newCluster(key types.NamespacedName) *cluster {
	return &cluster{key: key, members: map[*Host]member{}, changed: make(chan struct{})}
}

// update changes the shared state of a host; a host that is no member becomes one.
func (c *cluster) update(h *Host, change func(m *member)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.members[h]
	change(&m)
	c.members[h] = m
	c.announce()
}

// begin adds a host whose installation starts. A new bootstrap host starts a new cluster: hosts of a former
// installation under the same name leave it.
func (c *cluster) begin(h *Host, m member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.bootstrap {
		maps.DeleteFunc(c.members, func(_ *Host, old member) bool { return old.done })
	}
	c.members[h] = m
	c.announce()
}

// suspend records that a member is off: it does not serve and is not ready.
func (c *cluster) suspend(h *Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.members[h]; ok {
		m.serving, m.ready = false, false
		c.members[h] = m
		c.announce()
	}
}

// leave removes a host.
func (c *cluster) leave(h *Host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, h)
	c.announce()
}

func (c *cluster) announce() {
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *cluster) snapshot() (map[*Host]member, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.members), c.changed
}

// await blocks until the members meet a condition.
func (c *cluster) await(ctx context.Context, wanted func(members map[*Host]member) bool) error {
	for {
		members, changed := c.snapshot()
		if wanted(members) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// apiServed reports whether a control-plane host, or the bootstrap in its place, serves the API.
func apiServed(members map[*Host]member) bool {
	for _, m := range members {
		if m.serving {
			return true
		}
	}
	return false
}

// enoughControlPlanesReady returns the condition that the bootstrap host and day-1 workers wait for: two
// masters, or the other node of two. The source is waitForNodes in assisted-installer's installer.go (August
// 2026).
func enoughControlPlanesReady(twoNodes bool) func(members map[*Host]member) bool {
	enough := 2
	if twoNodes {
		enough = 1
	}
	return func(members map[*Host]member) bool {
		return count(members, func(m member) bool { return m.controlPlane && m.ready }) >= enough
	}
}

// controlPlaneDone reports whether all control-plane hosts of the installation are done, including the
// bootstrap.
func controlPlaneDone(members map[*Host]member) bool {
	return count(members, func(m member) bool { return m.bootstrap && m.done }) > 0 &&
		count(members, func(m member) bool { return m.controlPlane && !m.done }) == 0
}

func count(members map[*Host]member, matches func(m member) bool) int {
	n := 0
	for _, m := range members {
		if matches(m) {
			n++
		}
	}
	return n
}
