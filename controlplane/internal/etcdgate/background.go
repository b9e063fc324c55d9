package etcdgate

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// InitialBackgroundDelay is the time after which a background check runs again; it grows up to MaxDelay.
const InitialBackgroundDelay = reconcile.LowPriorityDelay

// check is a background check: no Machine waits for its result, and no event reports that it changed.
type check struct {
	// next is the time of the next run, backoff the delay after it. idle counts the runs in a row that found nothing.
	next    time.Time
	backoff wait.Backoff
	idle    int
	// found is the reported blocker, or nil.
	found *decision.Blocker
}

// ran records a run. After a changed result the backoff starts again.
func (c *check) ran(now time.Time, found *decision.Blocker, changed bool) {
	c.idle++
	if changed || textOf(found) != textOf(c.found) {
		c.backoff = BackoffFrom(InitialBackgroundDelay)
	}
	if changed || found != nil {
		c.idle = 0
	}
	c.next, c.found = now.Add(c.backoff.Step()), found
}

func textOf(b *decision.Blocker) string {
	if b == nil {
		return ""
	}
	return b.Reason + " " + b.Message
}

// InBackground runs a check when it is due, for the first time after a delay; id identifies the check. The blocker that a
// run finds is reported until the next run. After maxIdle runs in a row without a finding the check stops.
func (g *Gate) InBackground(
	s *scope.Scope, id string, after time.Duration, maxIdle int, run func() (found *decision.Blocker, changed bool),
) {
	c, known := g.checks.Get(id)
	if !known {
		c = check{next: g.clock.Now().Add(after), backoff: BackoffFrom(InitialBackgroundDelay)}
	}
	if !c.next.After(g.clock.Now()) && c.idle < maxIdle {
		g.run(&c, run)
	}
	g.checks.Add(id, c)
	if c.found != nil {
		s.Found.Block(tasks.HostRelease, c.found.Reason, bound.Message(c.found.Message))
	}
	if c.idle < maxIdle {
		s.Again.In(c.next.Sub(g.clock.Now()))
	}
}

// run runs a check, unless the etcd of many clusters is inspected at this time.
func (g *Gate) run(c *check, run func() (found *decision.Blocker, changed bool)) {
	if !g.free.TryAcquire(1) {
		c.next = g.clock.Now().Add(g.turn(false))
		return
	}
	defer g.free.Release(1)
	found, changed := run()
	c.ran(g.clock.Now(), found, changed)
}
