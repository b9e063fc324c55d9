package cluster

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// resource is a kind, or part of a kind, that is watched in a cluster.
type resource struct {
	// name is the plural of the kind. path is the path of the list, selector a label selector, and fields a
	// field selector.
	name, path, selector, fields string
	// demand reports whether the resource is needed. The caller holds the lock. Nil means always. A resource
	// that is not needed is not watched, and is read once for each connection after settleTime. With
	// onlyIfNeeded it is not read at all.
	demand       func(*connection) bool
	onlyIfNeeded bool
	// outdated reports whether the resource must be read again. The caller holds the lock. Nil means never,
	// because the resource is watched or matters only while needed.
	outdated func(*connection) bool
	// read reads the resource, and returns the version at which to start the watch. The version is empty if the
	// cluster does not have the kind yet.
	read func(ctx context.Context, c client.Client) (version string, apply func(*connection), err error)
	// readChange reads the state after an event. apply is nil if the event does not matter. Without readChange
	// the whole resource is read again.
	readChange func(ctx context.Context, conn *connection, access *conn.Access, e watchEvent) (apply func(*connection), err error)
}

var resources = []resource{nodes, tokenSecrets, clusterVersions, clusterOperators, requests, serverCAs, pools}

// watchEvent is an event of a watch. Code and Reason are those of an error.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object struct {
		Metadata struct {
			Name            string            `json:"name"`
			UID             types.UID         `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Labels          map[string]string `json:"labels"`
			// Annotations are those that are needed of Nodes. All others are ignored, because they are many and large.
			Annotations struct {
				CurrentConfig string `json:"machineconfiguration.openshift.io/currentConfig"`
				DesiredConfig string `json:"machineconfiguration.openshift.io/desiredConfig"`
			} `json:"annotations"`
		} `json:"metadata"`
		Code    int32               `json:"code"`
		Reason  metav1.StatusReason `json:"reason"`
		Message string              `json:"message"`
	} `json:"object"`
}

// readResult is the result of reading a resource.
type readResult struct {
	resource resource
	version  string
	apply    func(*connection)
	err      error
}

// readAndWatch reads all resources that are not watched yet, and starts their watches. It reports whether all
// needed resources are watched. If the connection does not support watches, it reads all needed resources.
func (c *connection) readAndWatch(ctx context.Context, access *conn.Access, kubernetes string) bool {
	c.mu.Lock()
	c.setPolled(access.Transport.Conn() == nil)
	missing := slices.DeleteFunc(slices.Clone(resources), func(r resource) bool { return c.fresh(r) || !c.due(r) })
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
		all = !slices.ContainsFunc(resources, func(r resource) bool { return c.needs(r) && !c.watching.Has(r.name) })
	})
	c.readReleases(ctx, access)
	return all
}

// startWatch marks a resource as known, and starts its watch. The caller holds the lock.
func (c *connection) startWatch(n readResult, access *conn.Access) {
	c.watching.Insert(n.resource.name)
	if n.resource.demand != nil {
		c.onDemand.Insert(n.resource.name)
	}
	if !c.polled {
		w := &watcher{connection: c, resource: n.resource, ctx: c.watches, access: access, version: n.version}
		go w.run()
	}
}

// read reads resources. After the first timeout it skips the rest.
func (c *connection) read(ctx context.Context, access *conn.Access, missing ...resource) []readResult {
	if len(missing) == 0 {
		return nil
	}
	found, queried := make([]readResult, len(missing)), 0
	err := c.reading.Acquire(ctx, 1)
	if err == nil {
		defer c.reading.Release(1)
		err = access.Call(func(c client.Client) error {
			for queried < len(missing) {
				n := missing[queried].readWith(ctx, c)
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

func (r resource) readWith(ctx context.Context, c client.Client) (n readResult) {
	ctx, cancel := context.WithTimeout(ctx, conn.ResponseTimeout)
	defer cancel()
	n.version, n.apply, n.err = r.read(ctx, c)
	return n
}

// applyResult applies the result of a read. The caller holds the lock.
func (c *connection) applyResult(ctx context.Context, n readResult) {
	c.unreadable(ctx, n.resource, n.resource.name, n.err)
	if n.err == nil {
		n.apply(c)
	}
}
