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
	readChange func(ctx context.Context, conn *connection, access *access, e watchEvent) (apply func(*connection), err error)
}

var resources = []resource{nodes, tokens, clusterVersions, clusterOperators, requests, serverCAs, pools}

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
func (conn *connection) readAndWatch(ctx context.Context, access *access, kubernetes string) bool {
	conn.mu.Lock()
	conn.setPolled(access.transport.Conn() == nil)
	missing := slices.DeleteFunc(slices.Clone(resources), func(r resource) bool { return conn.fresh(r) || !conn.due(r) })
	conn.mu.Unlock()
	found := conn.read(ctx, access, missing...)
	all := true
	conn.update(func() {
		if conn.access != access {
			access.transport.Close() // the kubeconfig changed during the visit
			return
		}
		if conn.stop == nil {
			conn.watches, conn.stop = context.WithCancel(context.WithoutCancel(ctx))
			conn.watching, conn.onDemand, conn.since = sets.New[string](), sets.New[string](), conn.now()
		}
		conn.connected, conn.failure = true, nil
		conn.kubernetes, conn.lastSuccess, conn.http2Conn = kubernetes, conn.now(), access.transport.Conn()
		for _, n := range found {
			conn.applyResult(ctx, n)
			if n.version != "" {
				conn.startWatch(n, access)
			}
		}
		if conn.polled {
			conn.releaseUnneeded()
		}
		all = !slices.ContainsFunc(resources, func(r resource) bool { return conn.needs(r) && !conn.watching.Has(r.name) })
	})
	conn.readReleases(ctx, access)
	return all
}

// startWatch marks a resource as known, and starts its watch. The caller holds the lock.
func (conn *connection) startWatch(n readResult, access *access) {
	conn.watching.Insert(n.resource.name)
	if n.resource.demand != nil {
		conn.onDemand.Insert(n.resource.name)
	}
	if !conn.polled {
		w := &watcher{connection: conn, resource: n.resource, ctx: conn.watches, access: access, version: n.version}
		go w.run()
	}
}

// read reads resources. After the first timeout it skips the rest.
func (conn *connection) read(ctx context.Context, access *access, missing ...resource) []readResult {
	if len(missing) == 0 {
		return nil
	}
	found, queried := make([]readResult, len(missing)), 0
	err := conn.reading.Acquire(ctx, 1)
	if err == nil {
		defer conn.reading.Release(1)
		err = access.call(func(c client.Client) error {
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
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	n.version, n.apply, n.err = r.read(ctx, c)
	return n
}

// applyResult applies the result of a read. The caller holds the lock.
func (conn *connection) applyResult(ctx context.Context, n readResult) {
	conn.unreadable(ctx, n.resource, n.resource.name, n.err)
	if n.err == nil {
		n.apply(conn)
	}
}
