package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/http2conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
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

// remote is the connection to one cluster, and the state of the cluster. Visits follow one another.
// Watches run concurrently.
type connection struct {
	key client.ObjectKey
	now func() time.Time
	// notify makes the control plane be reconciled, requestVisit the cluster be visited.
	notify, requestVisit func()
	// reading limits how many clusters are read at the same time.
	reading *semaphore.Weighted
	// watchTime is the duration of one watch request.
	watchTime time.Duration
	// serving are the authorities by which the certificates of the API servers were accepted.
	serving *serving
	// downBackoff is the backoff of a cluster that does not respond, partialBackoff that of a cluster that
	// cannot be read completely. Only visits use them.
	downBackoff, partialBackoff wait.Backoff

	mu sync.Mutex
	// closed is true when the connection was forgotten. This does not end a running visit.
	closed bool
	// kubeconfig is the resourceVersion of the Secret in use, access the result of its kubeconfig, and refused
	// the reason why that is not used.
	kubeconfig string
	access     *access
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
	// expecting is true while hosts of the cluster are expected to join. onDemand are the resources that are
	// watched on demand.
	expecting bool
	onDemand  sets.Set[string]
	// unread are the required resources that cannot be read or watched, unreadOnDemand the optional ones. The
	// state is complete without the optional ones.
	unread, unreadOnDemand sets.Set[string]

	// lastSuccess is the time of the last response. http2Conn, while not nil, may have received data since.
	lastSuccess time.Time
	http2Conn   *http2conn.Conn
	unreadSince time.Time
	failure     *failure
	kubernetes  string
	nodes       nodeList
	// releases are the OpenShift versions of machine configurations, by name. They are kept during an upgrade,
	// and while releasesNeeded is true.
	releases       map[string]string
	releasesNeeded bool
	// pools are the MachineConfigPools to report.
	pools       []facts.Pool
	poolsNeeded bool
	tokens      sets.Set[types.UID]
	// latestRequest is the UID of the newest CertificateSigningRequest of a kubelet.
	latestRequest types.UID
	// requestsRead is when the CertificateSigningRequests were last read.
	requestsRead time.Time
	// serverCA are the certificate authorities (PEM) of the machine config server. They are read while hosts are
	// expected.
	serverCA string
	// health holds the health of each object in observed, in the same order.
	health [len(observed)]health
}

func newConnection(key client.ObjectKey, now func() time.Time, reading *semaphore.Weighted, notify, requestVisit func()) *connection {
	return &connection{
		key: key, now: now, reading: reading, notify: notify, requestVisit: requestVisit, watchTime: watchTime,
		unread: sets.New[string](), unreadOnDemand: sets.New[string](), serving: newServing(now),
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
func (conn *connection) uses(kubeconfig string) bool {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.kubeconfig == kubeconfig
}

// use replaces the kubeconfig, and ends the connection of the former one. Even if the former credentials
// still work, other readers of the Secret do not have them any more.
func (conn *connection) use(published *corev1.Secret, userAgent string) {
	access, err := newAccess(published.Data[secret.KubeconfigDataName], userAgent, conn.now, conn.serving)
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.drop()
	conn.downBackoff, conn.partialBackoff = wait.Backoff{}, wait.Backoff{}
	if !conn.closed {
		conn.kubeconfig, conn.access, conn.refused = published.ResourceVersion, access, err
	}
}

// close ends the connection permanently.
func (conn *connection) close() {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	conn.drop()
	conn.connected, conn.closed = false, true
}

// drop ends the connection; the caller holds the lock.
func (conn *connection) drop() {
	conn.endWatches()
	if conn.access != nil {
		conn.access.transport.Close()
	}
	conn.access = nil
}

// endWatches ends the watches; the caller holds the lock.
func (conn *connection) endWatches() {
	if conn.stop != nil {
		conn.stop()
	}
	conn.stop, conn.watches, conn.watching, conn.onDemand = nil, nil, nil, nil
}

// visit connects to the cluster if necessary, and checks that it responds. It returns the time until the next
// visit. Zero means that only a change of the kubeconfig helps.
func (conn *connection) visit(ctx context.Context, installed bool) time.Duration {
	conn.mu.Lock()
	access, refused := conn.access, conn.refused
	conn.mu.Unlock()
	switch {
	case refused != nil:
		conn.failed(refused)
		return 0
	case access == nil:
		return 0
	}
	down, incomplete := retryInstalling, retryInstalling
	if installed {
		down, incomplete = retryDown, retryIncomplete
	}
	defer access.sessions.drop()
	defer access.transport.CloseIdle()
	kubernetes, err := access.probe(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return 0 // the manager is stopping
	case err != nil:
		conn.failed(err)
		// When the API server moves to another host, TCP keeps the dead connection for a quarter of an hour.
		access.transport.Close()
		return after(&conn.downBackoff, down)
	}
	conn.downBackoff = wait.Backoff{}
	if !conn.readAndWatch(ctx, access, kubernetes) {
		return after(&conn.partialBackoff, incomplete)
	}
	conn.partialBackoff = wait.Backoff{}
	if access.transport.Conn() == nil {
		return conn.nextPoll(installed)
	}
	return wait.Jitter(visitInterval, jitter)
}

// observe returns the state of the cluster.
func (conn *connection) observe() facts.Workload {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.view()
}

// view is observe for callers that hold the lock.
func (conn *connection) view() facts.Workload {
	seen := facts.Workload{Connected: conn.connected, LastSuccess: conn.answered(), Restarts: conn.restarts()}
	if !seen.Connected {
		if conn.failure != nil {
			seen.Failure = &conn.failure.Failure
		}
		return seen
	}
	seen.KubernetesVersion, seen.UnreadSince = conn.kubernetes, conn.unreadSince
	if conn.watching.Has(tokens.name) && !conn.unread.Has(tokens.name) {
		seen.Tokens = conn.tokens.Clone()
	}
	seen.Nodes, seen.Requested = append(seen.Nodes, conn.nodes...), conn.latestRequest
	if conn.onDemand.Has(serverCAs.name) { // without a watch the last value may be outdated
		seen.ServerCA = conn.serverCA
	}
	if conn.onDemand.Has(pools.name) {
		seen.Pools, seen.PoolsKnown = slices.Clone(conn.pools), true
	}
	for i, n := range seen.Nodes {
		seen.Nodes[i].Release = conn.releases[n.Config]
	}
	if r := conn.released(); r != nil {
		seen.OpenShiftVersion, seen.ReleaseImage, seen.Upgrading = r.completed, r.image, r.upgrading
		seen.Channel, seen.Offers, seen.Rollout = r.channel, r.offers, r.rollout
	}
	seen.Etcd = conn.health[slices.Index(observed[:], etcdOperator)].etcd
	for _, h := range conn.health {
		if h.problem != "" {
			seen.Unhealthy = append(seen.Unhealthy, h.problem)
		}
	}
	return seen
}

// restarts returns the planned changes that restart API servers or control plane hosts. The caller holds the
// lock.
func (conn *connection) restarts() []string {
	var planned []string
	for _, n := range conn.nodes {
		if n.Reconfigured {
			planned = append(planned, "Node "+bound.Value(n.Name)+" is being brought to another machine configuration")
		}
	}
	for i, h := range conn.health {
		if h.rollsOut {
			planned = append(planned, "ClusterOperator "+observed[i].name+" rolls out another revision")
		}
	}
	return planned
}

// released returns the release in the ClusterVersion, or nil if that was not read yet. The caller holds the
// lock.
func (conn *connection) released() *release {
	return conn.health[slices.Index(observed[:], clusterVersion)].release
}

// answered returns the time of the last response. The caller holds the lock.
func (conn *connection) answered() time.Time {
	if conn.http2Conn != nil && conn.http2Conn.LastReceived().After(conn.lastSuccess) {
		return conn.http2Conn.LastReceived()
	}
	return conn.lastSuccess
}

// update changes the state, and notifies if the change is visible.
func (conn *connection) update(change func()) {
	conn.mu.Lock()
	before, neededBefore := conn.view(), conn.needsPools()
	change()
	after := conn.view()
	begins := conn.resumePools(neededBefore)
	conn.mu.Unlock()
	before.LastSuccess = after.LastSuccess
	if !reflect.DeepEqual(before, after) {
		conn.notify()
	}
	if begins {
		conn.requestVisit()
	}
}

// unreadable records whether a resource, or its watch, cannot be read. The caller holds the lock.
func (conn *connection) unreadable(ctx context.Context, r resource, what string, err error) {
	unread := conn.unread
	if r.demand != nil {
		unread = conn.unreadOnDemand
	}
	if err == nil {
		unread.Delete(what)
	} else if !unread.Has(what) {
		unread.Insert(what)
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read the workload cluster", "what", what, "Cluster", conn.key)
	}
	switch {
	case conn.unread.Len() == 0:
		conn.unreadSince = time.Time{}
	case conn.unreadSince.IsZero():
		conn.unreadSince = conn.now()
	}
}
