package cluster

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// readResult is the result of reading a resource.
type readResult struct {
	resource objects.Resource
	version  string
	apply    func(*objects.State)
	err      error
}

// readAndWatch reads all resources that are not watched yet, and starts their watches. It reports whether all
// needed resources are watched. If the connection does not support watches, it reads all needed resources.
func (c *connection) readAndWatch(ctx context.Context, access *conn.Access, kubernetes string) bool {
	c.mu.Lock()
	c.setPolled(access.Transport.Conn() == nil)
	missing := slices.DeleteFunc(slices.Clone(objects.Resources), func(r objects.Resource) bool { return c.fresh(r) || !c.due(r) })
	c.mu.Unlock()
	found := c.read(ctx, access, missing...)
	all := true
	c.update(func() {
		if c.access != access {
			access.Transport.Close() // the kubeconfig changed during the visit
			return
		}
		if c.stop == nil {
			c.watches, c.stop = context.WithCancel(context.WithoutCancel(ctx))
			c.watching, c.onDemand, c.since = sets.New[string](), sets.New[string](), c.clock.Now()
		}
		c.connected, c.failure = true, nil
		c.kubernetes, c.lastSuccess, c.http2Conn = bound.Identifier(kubernetes, objects.LongestVersion), c.clock.Now(), access.Transport.Conn()
		for _, n := range found {
			c.applyResult(ctx, n)
			if n.version != "" {
				c.startWatch(n, access)
			}
		}
		if c.polled {
			c.releaseUnneeded()
		}
		all = !slices.ContainsFunc(objects.Resources, func(r objects.Resource) bool { return c.state.Needs(r) && !c.watching.Has(r.Name) })
	})
	return all
}

// startWatch marks a resource as known, and starts its watch. The caller holds the lock.
func (c *connection) startWatch(n readResult, access *conn.Access) {
	c.watching.Insert(n.resource.Name)
	if n.resource.Demand != nil {
		c.onDemand.Insert(n.resource.Name)
	}
	if !c.polled {
		w := &watcher{connection: c, resource: n.resource, ctx: c.watches, access: access, version: n.version}
		go w.run()
	}
}

// read reads resources. After the first timeout it skips the rest.
func (c *connection) read(ctx context.Context, access *conn.Access, missing ...objects.Resource) []readResult {
	if len(missing) == 0 {
		return nil
	}
	found, queried := make([]readResult, len(missing)), 0
	err := c.reading.Acquire(ctx, 1)
	if err == nil {
		defer c.reading.Release(1)
		err = access.Call(func(c client.Client) error {
			for queried < len(missing) {
				n := readWith(ctx, c, missing[queried])
				found[queried] = n
				queried++
				if errors.Is(n.err, context.DeadlineExceeded) {
					return n.err // other clusters wait for their turn
				}
			}
			return nil
		})
	}
	for i := range found {
		found[i].resource = missing[i]
		if i >= queried {
			found[i].err = err
		}
	}
	return found
}

func readWith(ctx context.Context, c client.Client, r objects.Resource) (n readResult) {
	ctx, cancel := context.WithTimeout(ctx, conn.ResponseTimeout)
	defer cancel()
	n.version, n.apply, n.err = r.Read(ctx, c)
	return n
}

// applyResult applies the result of a read. The caller holds the lock.
func (c *connection) applyResult(ctx context.Context, n readResult) {
	c.unreadable(ctx, n.resource, n.resource.Name, n.err)
	if n.err == nil {
		n.apply(c.state)
	}
}
