package cluster

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/authorities"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/http2conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

const (
	// visitInterval is the interval of regular visits, which check that the API server responds and accepts the
	// credentials. Changes are watched, and a broken or silent connection is noticed. Without HTTP/2 only visits
	// notice both: see pollInterval.
	visitInterval = 10 * time.Minute
	// jitter is the relative difference of intervals between clusters, so that thousands of visits do not
	// coincide.
	jitter = 0.2
	// settleTime is the age of a connection after which optional resources are read once. A manager that starts
	// opens thousands of connections, and reads the required resources first.
	settleTime = visitInterval / 2
	// retryFirst is the first retry interval of a cluster that does not respond, and of a watch that ended. The
	// interval then doubles up to one of three limits. retryInstalling is short: users wait for the
	// installation, and no watch reports when the API opens. retryDown is long: an installed cluster that is
	// down is often down with its whole site. retryIncomplete is for a cluster that responds, but lacks
	// permissions, which its administrator may be fixing.
	retryFirst, retryInstalling, retryIncomplete, retryDown = time.Second, 4 * time.Second, 45 * time.Second, 5 * time.Minute
)

// connection is the connection to one cluster, and the state of the cluster. Visits follow one another.
// Watches run concurrently.
type connection struct {
	key   client.ObjectKey
	clock clock.PassiveClock
	// notify makes the control plane be reconciled, requestVisit the cluster be visited.
	notify, requestVisit func()
	// reading limits how many clusters are read at the same time.
	reading *semaphore.Weighted
	// watchTime is the duration of one watch request.
	watchTime time.Duration
	// serving are the authorities by which the certificates of the API servers were accepted.
	serving *authorities.Serving
	// downBackoff is the backoff of a cluster that does not respond, partialBackoff that of a cluster that
	// cannot be read completely. Only visits use them.
	downBackoff, partialBackoff wait.Backoff

	mu sync.Mutex
	// closed is true when the connection was forgotten. This does not end a running visit.
	closed bool
	// kubeconfig is the resourceVersion of the Secret in use, access the result of its kubeconfig, and refused
	// the reason why that is not used.
	kubeconfig string
	access     *conn.Access
	refused    error
	// connected is true from a successful visit until a failure. After a change of the kubeconfig the state
	// stays until the new one was tried.
	connected bool
	// watching are the resources that are watched, or need no watch. Watches run in the context watches until
	// stop is called. stop is nil while nothing is watched. since is the start of the watches.
	watching sets.Set[string]
	since    time.Time
	watches  context.Context //nolint:containedctx // its goroutines outlive the visit that starts them
	stop     context.CancelFunc
	// polled is true while the connection does not support watches: each visit then reads all resources.
	polled bool
	// onDemand are the resources that are watched on demand.
	onDemand sets.Set[string]
	// unread are the required resources that cannot be read or watched, unreadOnDemand the optional ones. The
	// state is complete without the optional ones.
	unread, unreadOnDemand sets.Set[string]

	// lastSuccess is the time of the last response. http2Conn, while not nil, may have received data since.
	lastSuccess time.Time
	http2Conn   *http2conn.Conn
	unreadSince time.Time
	failure     *failure
	kubernetes  string
	// state is what was read of the objects of the cluster.
	state *objects.State
}

func newConnection(key client.ObjectKey, clk clock.PassiveClock, reading *semaphore.Weighted, notify, requestVisit func()) *connection {
	return &connection{
		key: key, clock: clk, reading: reading, notify: notify, requestVisit: requestVisit, watchTime: watchTime,
		unread: sets.New[string](), unreadOnDemand: sets.New[string](), serving: authorities.NewServing(clk),
		state: objects.NewState(clk),
	}
}

// after returns the next interval of a backoff. A backoff that is empty, or has another limit, restarts.
func after(retry *wait.Backoff, latest time.Duration) time.Duration {
	if retry.Cap != latest {
		*retry = wait.Backoff{Duration: retryFirst, Factor: 2, Jitter: jitter, Steps: 20, Cap: latest}
	}
	return retry.Step()
}

// uses reports whether the kubeconfig in use has this resourceVersion.
func (c *connection) uses(kubeconfig string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kubeconfig == kubeconfig
}

// use replaces the kubeconfig, and ends the connection of the former one. Even if the former credentials
// still work, other readers of the Secret do not have them any more.
func (c *connection) use(published *corev1.Secret, userAgent string) {
	access, err := conn.New(published.Data[secret.KubeconfigDataName], conn.Options{
		UserAgent: userAgent, Clock: c.clock, VerifyConnection: c.serving.Record,
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	c.downBackoff, c.partialBackoff = wait.Backoff{}, wait.Backoff{}
	if !c.closed {
		c.kubeconfig, c.access, c.refused = published.ResourceVersion, access, err
	}
}

// close ends the connection permanently.
func (c *connection) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
	c.connected, c.closed = false, true
}

// drop ends the connection; the caller holds the lock.
func (c *connection) drop() {
	c.endWatches()
	if c.access != nil {
		c.access.Transport.Close()
	}
	c.access = nil
}

// endWatches ends the watches; the caller holds the lock.
func (c *connection) endWatches() {
	if c.stop != nil {
		c.stop()
	}
	c.stop, c.watches, c.watching, c.onDemand = nil, nil, nil, nil
}

// visit connects to the cluster if necessary, and checks that it responds. It returns the time until the next
// visit. Zero means that only a change of the kubeconfig helps.
func (c *connection) visit(ctx context.Context, installed bool) time.Duration {
	c.mu.Lock()
	access, refused := c.access, c.refused
	c.mu.Unlock()
	switch {
	case refused != nil:
		c.failed(refused)
		return 0
	case access == nil:
		return 0
	}
	down, incomplete := retryInstalling, retryInstalling
	if installed {
		down, incomplete = retryDown, retryIncomplete
	}
	defer access.CloseIdle()
	kubernetes, err := access.Probe(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return 0 // the manager is stopping
	case err != nil:
		c.failed(err)
		// When the API server moves to another host, TCP keeps the dead connection for a quarter of an hour.
		access.Transport.Close()
		return after(&c.downBackoff, down)
	}
	c.downBackoff = wait.Backoff{}
	if !c.readAndWatch(ctx, access, kubernetes) {
		return after(&c.partialBackoff, incomplete)
	}
	c.partialBackoff = wait.Backoff{}
	if access.Transport.Conn() == nil {
		return c.nextPoll(installed)
	}
	return wait.Jitter(visitInterval, jitter)
}

// observe returns the state of the cluster.
func (c *connection) observe() workload.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view()
}

// view is observe for callers that hold the lock.
func (c *connection) view() (seen workload.State) {
	if c.connected {
		seen = c.state.View(c.isCurrent)
		seen.KubernetesVersion, seen.UnreadSince = c.kubernetes, c.unreadSince
	} else {
		seen.Restarts = c.state.Restarts()
		if c.failure != nil {
			seen.Failure = &c.failure.Failure
		}
	}
	seen.Connected, seen.LastSuccess = c.connected, c.answered()
	return seen
}

// answered returns the time of the last response. The caller holds the lock.
func (c *connection) answered() time.Time {
	if c.http2Conn != nil && c.http2Conn.LastReceived().After(c.lastSuccess) {
		return c.http2Conn.LastReceived()
	}
	return c.lastSuccess
}

// update changes the state, and notifies if the change is visible.
func (c *connection) update(change func()) {
	c.mu.Lock()
	before, neededBefore := c.view(), c.state.NeedsPools()
	change()
	after := c.view()
	begins := c.resumePools(neededBefore) || c.apiServersUpdated(before.APIServersVersion, after.APIServersVersion)
	c.mu.Unlock()
	before.LastSuccess = after.LastSuccess
	if !reflect.DeepEqual(before, after) {
		c.notify()
	}
	if begins {
		c.requestVisit()
	}
}

// apiServersUpdated reports whether all API servers have another version than the one that answered the last visit. Then
// the cluster must be visited, because only the response contains the hash of the version. The caller holds the lock.
func (c *connection) apiServersUpdated(before, after string) bool {
	return c.connected && after != "" && after != before && !versions.SameKubernetes(after, c.kubernetes)
}

// unreadable records whether a resource, or its watch, cannot be read. The caller holds the lock.
func (c *connection) unreadable(ctx context.Context, r objects.Resource, what string, err error) {
	unread := c.unread
	if r.Demand != nil {
		unread = c.unreadOnDemand
	}
	if err == nil {
		unread.Delete(what)
	} else if !unread.Has(what) {
		unread.Insert(what)
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read the workload cluster", "what", what, "Cluster", c.key)
	}
	switch {
	case c.unread.Len() == 0:
		c.unreadSince = time.Time{}
	case c.unreadSince.IsZero():
		c.unreadSince = c.clock.Now()
	}
}
