// Package cluster keeps a connection to each installed cluster and watches the state that matters on the hub.
// The state comprises the response of the API server, Nodes, the release, the health of control plane
// operators, and issued tokens. It also watches MachineConfigPools during an upgrade or while workers lag
// behind. A hub has thousands of clusters. Therefore only the metadata of objects is watched, at fixed paths,
// and only the facts derived from objects are kept.
package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// maxVisits is the number of clusters that are visited at the same time. When a manager starts, most visits
	// wait for sites that do not respond. These visits must not delay those of reachable clusters.
	maxVisits = 400
	// maxReads is the number of clusters whose objects are read at the same time. Reading takes CPU and memory,
	// waiting takes neither.
	maxReads = 32
	// callTimeout is the limit for all requests of one call to a cluster.
	callTimeout = 20 * time.Second
	// queueSize is the capacity of the channels of clusters to reconcile and to visit.
	queueSize = 1024
)

// RequestsFunc returns the control plane of a Cluster as reconcile requests.
type RequestsFunc func(ctx context.Context, cluster client.ObjectKey) []ctrl.Request

// Clusters keeps the connections to the installed clusters.
type Clusters struct {
	Options

	mu          sync.RWMutex
	connections map[client.ObjectKey]*connection
	// changes are the clusters whose state changed, visits those to visit.
	changes, visits chan event.GenericEvent
	reading         *semaphore.Weighted
	// callTimeout is the limit for all requests of one call to a cluster.
	callTimeout time.Duration
}

// Options are the parameters of NewClusters.
type Options struct {
	// Cached reads Clusters and the metadata of Secrets, Live the kubeconfigs.
	Cached, Live client.Reader
	// UserAgent of the connections.
	UserAgent string
	// Selected reports whether a Cluster is observed, that is whether this manager reconciles its control plane.
	Selected func(ctx context.Context, cluster *clusterv1.Cluster) (bool, error)
	// Installed reports whether the installation of a Cluster has finished. Its API may respond long before: the
	// bootstrap host serves it until that host reboots.
	Installed func(ctx context.Context, cluster *clusterv1.Cluster) bool
	// Requests maps a Cluster to its control plane.
	Requests RequestsFunc
	// Clock is the source of the time; nil means the system clock.
	Clock clock.PassiveClock
}

// NewClusters returns Clusters without any connection.
func NewClusters(options Options) *Clusters {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Clusters{
		Options:     options,
		connections: map[client.ObjectKey]*connection{},
		changes:     make(chan event.GenericEvent, queueSize),
		visits:      make(chan event.GenericEvent, queueSize),
		reading:     semaphore.NewWeighted(maxReads), callTimeout: callTimeout,
	}
}

// SetupWithManager adds the controller that visits each cluster when its kubeconfig is created or changed,
// after a failure, and every visitInterval.
func (c *Clusters) SetupWithManager(mgr manager.Manager, options controller.Options) error {
	options.MaxConcurrentReconciles = maxVisits
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workload").
		WithOptions(options).
		For(&clusterv1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(kube.MetadataOf(kube.Secret), handler.EnqueueRequestsFromMapFunc(clusterOfKubeconfig)).
		WatchesRawSource(source.Channel(c.visits, c.installingFirst(func(_ context.Context, cluster client.ObjectKey) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: cluster}}
		}))).
		Complete(c)
	if err != nil {
		return fmt.Errorf("cannot set up the connections to the workload clusters: %w", err)
	}
	return nil
}

// clusterOfKubeconfig maps the Secret <cluster>-kubeconfig to its Cluster.
func clusterOfKubeconfig(_ context.Context, obj client.Object) []ctrl.Request {
	cluster, purpose, err := secret.ParseSecretName(obj.GetName())
	if err != nil || purpose != secret.Kubeconfig {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: cluster}}}
}

// Source returns the source of events about changes in clusters: see workload.State.
func (c *Clusters) Source() source.Source {
	return source.Channel(c.changes, c.installingFirst(c.Requests))
}

// installingFirst enqueues clusters that are being installed before all others. When a manager starts, events
// of all clusters arrive at once.
func (c *Clusters) installingFirst(requests RequestsFunc) handler.EventHandler {
	return handler.Funcs{GenericFunc: func(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		key := client.ObjectKeyFromObject(e.Object)
		if c.installed(ctx, key) {
			reconcile.AddLowPriority(q, requests(ctx, key)...)
			return
		}
		for _, request := range requests(ctx, key) {
			q.Add(request)
		}
	}}
}

func (c *Clusters) installed(ctx context.Context, key client.ObjectKey) bool {
	cluster := &clusterv1.Cluster{}
	return c.Cached.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy) == nil && c.Installed(ctx, cluster)
}

// Reconcile visits a cluster. Foreign clusters are never connected to.
func (c *Clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster, err := kube.Read(ctx, c.Cached, req.NamespacedName, &clusterv1.Cluster{})
	if err != nil {
		return ctrl.Result{}, err
	}
	ours := cluster != nil
	if ours {
		if ours, err = c.Selected(ctx, cluster); err != nil {
			return ctrl.Result{}, err
		}
	}
	if !ours {
		c.Forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	conn := c.ensureConnection(req.NamespacedName)
	if err := c.updateKubeconfig(ctx, conn); err != nil {
		return ctrl.Result{}, err
	}
	next := conn.visit(ctx, c.Installed(ctx, cluster))
	return reconcile.ResultAfter(next), nil
}

// updateKubeconfig uses the published kubeconfig if it changed. A deleted kubeconfig stays in use: the
// cluster still exists, and the control plane needs the connection to publish another kubeconfig.
func (c *Clusters) updateKubeconfig(ctx context.Context, conn *connection) error {
	key := client.ObjectKey{Namespace: conn.key.Namespace, Name: secret.Name(conn.key.Name, secret.Kubeconfig)}
	published, err := kube.Read(ctx, c.Cached, key, kube.MetadataOf(kube.Secret))
	if err != nil || published == nil || conn.uses(published.ResourceVersion) {
		return err
	}
	current, err := kube.Read(ctx, c.Live, key, &corev1.Secret{})
	if err != nil || current == nil {
		return err
	}
	conn.use(current, c.UserAgent)
	return nil
}

// ensureConnection returns the connection to a cluster, and creates it if it does not exist.
func (c *Clusters) ensureConnection(cluster client.ObjectKey) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn, found := c.connections[cluster]
	if !found {
		conn = newConnection(cluster, c.Clock, c.reading, func() { c.notify(c.changes, cluster) }, func() { c.notify(c.visits, cluster) })
		c.connections[cluster] = conn
	}
	return conn
}

func (c *Clusters) notify(channel chan<- event.GenericEvent, cluster client.ObjectKey) {
	channel <- event.GenericEvent{Object: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster.Namespace,
		Name:      cluster.Name,
	}}}
}

// lookup returns the connection to a cluster that was visited, else nil.
func (c *Clusters) lookup(cluster client.ObjectKey) *connection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.connections[cluster]
}

// Observe returns the state of the cluster. An unreachable cluster is no error. A cluster without a
// connection is visited.
func (c *Clusters) Observe(cluster client.ObjectKey) workload.State {
	if conn := c.lookup(cluster); conn != nil {
		return conn.observe()
	}
	c.notify(c.visits, cluster) // its control plane was not selected when the Cluster was reconciled
	return workload.State{}
}

// View returns the state of a cluster, and false if the manager has no connection to it.
func (c *Clusters) View(cluster client.ObjectKey) (workload.State, bool) {
	if conn := c.lookup(cluster); conn != nil {
		return conn.observe(), true
	}
	return workload.State{}, false
}

// Forget drops the connection to a cluster and its state.
func (c *Clusters) Forget(cluster client.ObjectKey) {
	c.mu.Lock()
	conn := c.connections[cluster]
	delete(c.connections, cluster)
	c.mu.Unlock()
	if conn != nil {
		conn.close()
	}
}
