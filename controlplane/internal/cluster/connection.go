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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/streams"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	// visitInterval is how often an API server is asked whether it answers, and accepts the credentials, without a reason. What changes is watched, and a connection that
	// breaks, or is silent, is noticed; without HTTP/2 only by asking: see pollInterval.
	visitInterval = 10 * time.Minute
	// spread is by how much times differ between clusters, so that thousands do not come at once.
	spread = 0.2
	// settled is how long a connection has lasted when it is asked for what nobody awaits. Each manager that starts makes thousands, and has enough to read.
	settled = visitInterval / 2
	// retryFirst is when a cluster that does not answer, or a watch that ended, is tried again first; then the time doubles. While it is installed people wait for it, and there is nothing
	// to watch that tells when its API opens; one that is installed is down, often with its whole site, and for long.
	// One that answers, but not all, has rights that somebody may be mending.
	retryFirst, retryInstalling, retryIncomplete, retryDown = time.Second, 4 * time.Second, 45 * time.Second, 5 * time.Minute
)

// connection is the connection to one cluster, and what is known of the cluster. Visits follow one another; watches run beside them.
type connection struct {
	key client.ObjectKey
	now func() time.Time
	// notify makes the control plane be reconciled, again the cluster be visited.
	notify, again func()
	// reading bounds how many clusters are read as a whole at a time.
	reading *semaphore.Weighted
	// watchTime is for how long something is watched at a time.
	watchTime time.Duration
	// silent is when to come back to a cluster that does not answer, partial to one of which not all can be read. Only visits use them.
	silent, partial wait.Backoff

	mu sync.Mutex
	// closed is true when the link is forgotten, which does not end a visit that runs.
	closed bool
	// kubeconfig is the version of the Secret in use; access is what it leads to, refused why it is not used.
	kubeconfig string
	access     *access
	refused    error
	// connected is true from when the cluster answered until it does not. With another kubeconfig what is known stands until that one was tried.
	connected bool
	// watching are the resources that are watched, or need not be, in the context watches, until stop is called, which is nil when nothing is watched yet, or any more;
	// since is from when on.
	watching sets.Set[string]
	since    time.Time
	watches  context.Context //nolint:containedctx // of goroutines that outlive the visit that starts them
	stop     context.CancelFunc
	// polled is true while the connection does not carry watches: each visit reads what is watched elsewhere.
	polled bool
	// awaiting is true while hosts of the cluster are awaited, onDemand are the resources that are watched because somebody asks for them.
	awaiting bool
	onDemand sets.Set[string]
	// unread is what cannot be read or watched, unreadOnDemand that which only some ask for: nothing that is known of the cluster is missing then.
	unread, unreadOnDemand sets.Set[string]

	// lastSuccess is when the cluster answered a request last; on conn, while there is one, something may have come since.
	lastSuccess time.Time
	conn        *streams.Conn
	unreadSince time.Time
	failure     *failure
	kubernetes  string
	nodes       nodeList
	// releases are those of the machine configurations of Nodes, by name, while the cluster is being upgraded or they are awaited.
	releases       map[string]string
	releasesNeeded bool
	// pools are the MachineConfigPools of which something is to be told.
	pools       []facts.Pool
	poolsNeeded bool
	tokens      sets.Set[types.UID]
	// requested is the certificate request of a kubelet that was made last.
	requested types.UID
	// requestsRead is when the requests were read last.
	requestsRead time.Time
	// serverCA are the certificates by which hosts recognise the machine config server; read while hosts are awaited.
	serverCA string
	// health is that of what is observed, in its order.
	health [len(observed)]health
}

func newConnection(key client.ObjectKey, now func() time.Time, reading *semaphore.Weighted, notify, again func()) *connection {
	return &connection{
		key: key, now: now, reading: reading, notify: notify, again: again, watchTime: watchTime,
		unread: sets.New[string](), unreadOnDemand: sets.New[string](),
	}
}

// after is when to try again, by a back-off that begins again when it is empty, or the latest time is another.
func after(retry *wait.Backoff, latest time.Duration) time.Duration {
	if retry.Cap != latest {
		*retry = wait.Backoff{Duration: retryFirst, Factor: 2, Jitter: spread, Steps: 20, Cap: latest}
	}
	return retry.Step()
}

// uses reports whether the kubeconfig is of this version.
func (l *connection) uses(kubeconfig string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kubeconfig == kubeconfig
}

// use takes another kubeconfig into use. The connection by the former one goes: whatever it still can do, the others who read the Secret cannot.
func (l *connection) use(published *corev1.Secret, userAgent string) {
	access, err := open(published.Data[secret.KubeconfigDataName], userAgent, l.now)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	l.silent, l.partial = wait.Backoff{}, wait.Backoff{}
	if !l.closed {
		l.kubeconfig, l.access, l.refused = published.ResourceVersion, access, err
	}
}

// close ends the connection for good.
func (l *connection) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	l.connected, l.closed = false, true
}

// drop ends the connection; the caller holds the lock.
func (l *connection) drop() {
	l.endWatches()
	if l.access != nil {
		l.access.transport.Close()
	}
	l.access = nil
}

// endWatches ends the watches; the caller holds the lock.
func (l *connection) endWatches() {
	if l.stop != nil {
		l.stop()
	}
	l.stop, l.watches, l.watching, l.onDemand = nil, nil, nil, nil
}

// visit connects to the cluster if it is not connected, and looks whether it answers. It returns when to come back; zero: when there is another kubeconfig.
func (l *connection) visit(ctx context.Context, installed bool) time.Duration {
	l.mu.Lock()
	access, refused := l.access, l.refused
	l.mu.Unlock()
	switch {
	case refused != nil:
		l.failed(refused)
		return 0
	case access == nil:
		return 0
	}
	down, incomplete := retryInstalling, retryInstalling
	if installed {
		down, incomplete = retryDown, retryIncomplete
	}
	defer access.sessions.drop()
	defer access.transport.Rest()
	kubernetes, err := access.probe(ctx)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return 0 // this process ends
	case err != nil:
		l.failed(err)
		access.transport.Close() // one on which nothing is answered would be used again: when the API server has moved to another host, for a quarter of an hour
		return after(&l.silent, down)
	}
	l.silent = wait.Backoff{}
	if !l.follow(ctx, access, kubernetes) {
		return after(&l.partial, incomplete)
	}
	l.partial = wait.Backoff{}
	if access.transport.Conn() == nil {
		return l.nextPoll(installed)
	}
	return wait.Jitter(visitInterval, spread)
}

// observe is what is known of the cluster.
func (l *connection) observe() facts.Workload {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view()
}

// view is that, for those who hold the lock.
func (l *connection) view() facts.Workload {
	seen := facts.Workload{Connected: l.connected, LastSuccess: l.answered(), Restarts: l.restarts()}
	if !seen.Connected {
		if l.failure != nil {
			seen.Failure = &l.failure.Failure
		}
		return seen
	}
	seen.KubernetesVersion, seen.UnreadSince = l.kubernetes, l.unreadSince
	if l.watching.Has(tokens.name) && !l.unread.Has(tokens.name) {
		seen.Tokens = l.tokens.Clone()
	}
	seen.Nodes, seen.Requested = append(seen.Nodes, l.nodes...), l.requested
	if l.onDemand.Has(serverCAs.name) { // what was read for others is not known to be true any more
		seen.ServerCA = l.serverCA
	}
	if l.onDemand.Has(pools.name) {
		seen.Pools, seen.PoolsKnown = slices.Clone(l.pools), true
	}
	for i, n := range seen.Nodes {
		seen.Nodes[i].Release = l.releases[n.Config]
	}
	if r := l.released(); r != nil {
		seen.OpenShiftVersion, seen.ReleaseImage, seen.Upgrading = r.completed, r.image, r.upgrading
		seen.Channel, seen.Offers, seen.Rollout = r.channel, r.offers, r.rollout
	}
	seen.Etcd = l.health[slices.Index(observed[:], etcdOperator)].etcd
	for _, h := range l.health {
		if h.problem != "" {
			seen.Unhealthy = append(seen.Unhealthy, h.problem)
		}
	}
	return seen
}

// restarts are the planned changes for which the API server or control-plane hosts restart; the caller holds the lock.
func (l *connection) restarts() []string {
	var planned []string
	for _, n := range l.nodes {
		if n.Reconfigured {
			planned = append(planned, "Node "+bound.Value(n.Name)+" is being brought to another machine configuration")
		}
	}
	for i, h := range l.health {
		if h.rollsOut {
			planned = append(planned, "ClusterOperator "+observed[i].name+" rolls out another revision")
		}
	}
	return planned
}

// released is what the ClusterVersion says; nil: it was not read yet. The caller holds the lock.
func (l *connection) released() *release {
	return l.health[slices.Index(observed[:], clusterVersion)].release
}

// answered is when the cluster answered last; the caller holds the lock.
func (l *connection) answered() time.Time {
	if l.conn != nil && l.conn.Heard().After(l.lastSuccess) {
		return l.conn.Heard()
	}
	return l.lastSuccess
}

// update changes what is known, and tells of it if it makes a difference.
func (l *connection) update(change func()) {
	l.mu.Lock()
	before, asked := l.view(), l.poolsMatter()
	change()
	after := l.view()
	begins := l.poolsBegin(asked)
	l.mu.Unlock()
	before.LastSuccess = after.LastSuccess
	if !reflect.DeepEqual(before, after) {
		l.notify()
	}
	if begins {
		l.again()
	}
}

// unreadable notes whether something of a resource cannot be read or watched; the caller holds the lock.
func (l *connection) unreadable(ctx context.Context, r resource, what string, err error) {
	unread := l.unread
	if r.demand != nil {
		unread = l.unreadOnDemand
	}
	if err == nil {
		unread.Delete(what)
	} else if !unread.Has(what) {
		unread.Insert(what)
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read the workload cluster", "what", what, "Cluster", l.key)
	}
	switch {
	case l.unread.Len() == 0:
		l.unreadSince = time.Time{}
	case l.unreadSince.IsZero():
		l.unreadSince = l.now()
	}
}
