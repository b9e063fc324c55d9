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

// resource is what is watched of a cluster.
type resource struct {
	// name is that of the kind, in the plural; path is where it is watched, selector a label selector, and fields one of fields.
	name, path, selector, fields string
	// demand tells, to who holds the lock, whether somebody asks for it: else it is read once for each connection, when that has settled, and not watched; not even read where onlyIfNeeded is true.
	// Nil: it is always watched.
	demand       func(*connection) bool
	onlyIfNeeded bool
	// outdated tells, to who holds the lock, whether what was read is to be read again. Nil: never, for it is watched, or does not matter until somebody asks for it.
	outdated func(*connection) bool
	// read reads what is to be known, and the version from which on it is to be watched; empty: the cluster does not know the kind yet.
	read func(ctx context.Context, c client.Client) (version string, put func(*connection), err error)
	// take reads what is to be known after a change; put is nil when it is nothing that matters. Nil: read does so.
	take func(ctx context.Context, l *connection, access *access, e watchEvent) (put func(*connection), err error)
}

var resources = []resource{nodes, tokens, clusterVersions, clusterOperators, requests, serverCAs, pools}

// watchEvent is what a watch tells of an object; of a problem, code says what it is.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object struct {
		Metadata struct {
			Name            string            `json:"name"`
			UID             types.UID         `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Labels          map[string]string `json:"labels"`
			// Annotations are those that are read of Nodes: others are many, and large.
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

// news is what was read of a resource.
type news struct {
	resource resource
	version  string
	put      func(*connection)
	err      error
}

// follow makes all be watched that is not yet, after it was read, and reports whether that was possible. What cannot be watched over the connection is read each time.
func (l *connection) follow(ctx context.Context, access *access, kubernetes string) bool {
	l.mu.Lock()
	l.setPolled(access.transport.Conn() == nil)
	missing := slices.DeleteFunc(slices.Clone(resources), func(r resource) bool { return l.fresh(r) || !l.due(r) })
	l.mu.Unlock()
	found := l.read(ctx, access, missing...)
	all := true
	l.update(func() {
		if l.access != access {
			access.transport.Close() // as the link was meanwhile
			return
		}
		if l.stop == nil {
			l.watches, l.stop = context.WithCancel(context.WithoutCancel(ctx))
			l.watching, l.onDemand, l.since = sets.New[string](), sets.New[string](), l.now()
		}
		l.connected, l.failure = true, nil
		l.kubernetes, l.lastSuccess, l.conn = kubernetes, l.now(), access.transport.Conn()
		for _, n := range found {
			l.applyNews(ctx, n)
			if n.version != "" {
				l.begin(n, access)
			}
		}
		if l.polled {
			l.restUnwanted()
		}
		all = !slices.ContainsFunc(resources, func(r resource) bool { return l.wants(r) && !l.watching.Has(r.name) })
	})
	l.readReleases(ctx, access)
	return all
}

// begin keeps what was read known from now on; the caller holds the lock.
func (l *connection) begin(n news, access *access) {
	l.watching.Insert(n.resource.name)
	if n.resource.demand != nil {
		l.onDemand.Insert(n.resource.name)
	}
	if !l.polled {
		w := &watcher{connection: l, resource: n.resource, ctx: l.watches, access: access, version: n.version}
		go w.run()
	}
}

// read reads resources, if there are any.
func (l *connection) read(ctx context.Context, access *access, missing ...resource) []news {
	if len(missing) == 0 {
		return nil
	}
	found, asked := make([]news, len(missing)), 0
	err := l.reading.Acquire(ctx, 1)
	if err == nil {
		defer l.reading.Release(1)
		err = access.call(func(c client.Client) error {
			for asked < len(missing) {
				n := missing[asked].readWith(ctx, c)
				found[asked] = n
				asked++
				if errors.Is(n.err, context.DeadlineExceeded) {
					return n.err // of the rest, too: others wait
				}
			}
			return nil
		})
	}
	for i := range found {
		found[i].resource = missing[i]
		if i >= asked {
			found[i].err = err
		}
	}
	return found
}

func (r resource) readWith(ctx context.Context, c client.Client) (n news) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	n.version, n.put, n.err = r.read(ctx, c)
	return n
}

// applyNews takes in what was read.
func (l *connection) applyNews(ctx context.Context, n news) {
	l.unreadable(ctx, n.resource, n.resource.name, n.err)
	if n.err == nil {
		n.put(l)
	}
}
