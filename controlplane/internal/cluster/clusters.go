// Package cluster keeps a connection to each installed cluster and knows, by watching, what of it matters on the hub: whether its API answers, its Nodes, its
// release, the health of its control plane's operators, and the tokens that were issued; while it is upgraded, or its workers lag behind, its MachineConfigPools,
// too. A hub has thousands of clusters: of each object only the metadata is watched, at a fixed path, and what is kept of it is what is read of it.
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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

const (
	// visitors is how many clusters are visited at a time. At the start of a manager most of them wait for sites that do not answer, and must not keep those
	// waiting that do.
	visitors = 400
	// readers is how many of them are read as a whole at a time. That takes processors and memory, where waiting takes none.
	readers = 32
	// pending is the number of clusters that may wait to be noticed.
	pending = 1024
)

// RequestsFunc returns the control plane of a Cluster as reconcile requests.
type RequestsFunc func(ctx context.Context, cluster client.ObjectKey) []ctrl.Request

// Clusters keeps the connections to the installed clusters.
type Clusters struct {
	Options

	mu          sync.RWMutex
	connections map[client.ObjectKey]*connection
	// news are the clusters of which something is to be told, visits those that are to be visited.
	news, visits chan event.GenericEvent
	now          func() time.Time
	reading      *semaphore.Weighted
	// callTime is how long a cluster has for what is asked of it at once.
	callTime time.Duration
}

// Options are the parameters of NewClusters.
type Options struct {
	// Cached reads Clusters and the metadata of Secrets, Live the kubeconfigs.
	Cached, Live client.Reader
	// UserAgent of the connections.
	UserAgent string
	// Selected reports whether a Cluster is to be observed: its control plane is one that this manager reconciles.
	Selected func(ctx context.Context, cluster *clusterv1.Cluster) (bool, error)
	// Installed reports whether the installation of a Cluster is over. Its API may answer long before: that of the bootstrap, until the host reboots.
	Installed func(ctx context.Context, cluster *clusterv1.Cluster) bool
	// Requests maps a Cluster to its control plane.
	Requests RequestsFunc
}

// NewClusters returns what keeps the connections, and has none yet.
func NewClusters(options Options) *Clusters {
	return &Clusters{
		Options:     options,
		connections: map[client.ObjectKey]*connection{},
		news:        make(chan event.GenericEvent, pending),
		visits:      make(chan event.GenericEvent, pending),
		now:         time.Now, reading: semaphore.NewWeighted(readers), callTime: callTime,
	}
}

// SetupWithManager makes the manager visit each cluster when it has a kubeconfig, another one, or did not answer, and once in a while.
func (c *Clusters) SetupWithManager(mgr manager.Manager, options controller.Options) error {
	options.MaxConcurrentReconciles = visitors
	err := ctrl.NewControllerManagedBy(mgr).
		Named("workload").
		WithOptions(options).
		For(&clusterv1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(kube.MetadataOf(kube.Secret), handler.EnqueueRequestsFromMapFunc(ofKubeconfig)).
		WatchesRawSource(source.Channel(c.visits, c.newestFirst(func(_ context.Context, cluster client.ObjectKey) []ctrl.Request {
			return []ctrl.Request{{NamespacedName: cluster}}
		}))).
		Complete(c)
	if err != nil {
		return fmt.Errorf("cannot set up the connections to the workload clusters: %w", err)
	}
	return nil
}

// ofKubeconfig maps the Secret <cluster>-kubeconfig to its Cluster.
func ofKubeconfig(_ context.Context, obj client.Object) []ctrl.Request {
	cluster, purpose, err := secret.ParseSecretName(obj.GetName())
	if err != nil || purpose != secret.Kubeconfig {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: cluster}}}
}

// Source of the events that something changed of a cluster: see facts.Workload.
func (c *Clusters) Source() source.Source {
	return source.Channel(c.news, c.newestFirst(c.Requests))
}

// newestFirst puts what is told of clusters that are being installed before what is told of the others: when a manager starts, those are all told of at once.
func (c *Clusters) newestFirst(requests RequestsFunc) handler.EventHandler {
	return handler.Funcs{GenericFunc: func(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
		key := client.ObjectKeyFromObject(e.Object)
		if c.installed(ctx, key) {
			reconcile.AddLate(q, requests(ctx, key)...)
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

// Reconcile visits a cluster. Clusters of others are never connected to.
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
	l := c.connectionOf(req.NamespacedName)
	if err := c.refresh(ctx, l); err != nil {
		return ctrl.Result{}, err
	}
	next := l.visit(ctx, c.Installed(ctx, cluster))
	return ctrl.Result{RequeueAfter: next}, nil
}

// refresh takes in another kubeconfig. One that is deleted stays in use: what it led to is still there, and the control plane publishes another with its help.
func (c *Clusters) refresh(ctx context.Context, l *connection) error {
	key := client.ObjectKey{Namespace: l.key.Namespace, Name: secret.Name(l.key.Name, secret.Kubeconfig)}
	published, err := kube.Read(ctx, c.Cached, key, kube.MetadataOf(kube.Secret))
	if err != nil || published == nil || l.uses(published.ResourceVersion) {
		return err
	}
	current, err := kube.Read(ctx, c.Live, key, &corev1.Secret{})
	if err != nil || current == nil {
		return err
	}
	l.use(current, c.UserAgent)
	return nil
}

// connectionOf returns that of a cluster.
func (c *Clusters) connectionOf(cluster client.ObjectKey) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, found := c.connections[cluster]
	if !found {
		l = newConnection(cluster, c.now, c.reading, func() { c.notify(c.news, cluster) }, func() { c.notify(c.visits, cluster) })
		c.connections[cluster] = l
	}
	return l
}

func (c *Clusters) notify(channel chan<- event.GenericEvent, cluster client.ObjectKey) {
	channel <- event.GenericEvent{Object: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}}
}

// known returns the link of a cluster that was visited, else nil.
func (c *Clusters) known(cluster client.ObjectKey) *connection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.connections[cluster]
}

// Observe returns what is known of the cluster. A cluster that cannot be reached is no error.
func (c *Clusters) Observe(cluster client.ObjectKey) facts.Workload {
	if l := c.known(cluster); l != nil {
		return l.observe()
	}
	c.notify(c.visits, cluster) // its control plane was not selected when the Cluster was seen
	return facts.Workload{}
}

// View is what is known of a cluster that the manager looks after; false for any other.
func (c *Clusters) View(cluster client.ObjectKey) (facts.Workload, bool) {
	if l := c.known(cluster); l != nil {
		return l.observe(), true
	}
	return facts.Workload{}, false
}

// Forget drops the connection to a cluster, and what is remembered of it.
func (c *Clusters) Forget(cluster client.ObjectKey) {
	c.mu.Lock()
	l := c.connections[cluster]
	delete(c.connections, cluster)
	c.mu.Unlock()
	if l != nil {
		l.close()
	}
}
