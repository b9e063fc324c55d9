// Package workload observes the installed clusters: whether their API answers, their Nodes, their release and the health of their
// control plane's operators.
package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	// connectInterval is how often a connection to a cluster is tried. An installation opens the API at no time that could be
	// watched; with the 30 s that are the default of the cache, users would wait for us.
	connectInterval = time.Second
	// connectors is how many connections are tried at a time: an API server that does not answer yet takes its time-out of 10 s.
	connectors = 100
	// GracePeriod is how long an API server may not answer before it counts as down.
	GracePeriod = 5 * time.Minute
)

// RequestsFunc returns the control plane of a Cluster as reconcile requests.
type RequestsFunc func(ctx context.Context, cluster client.ObjectKey) []ctrl.Request

// Clusters observes the installed clusters.
type Clusters struct {
	cache    clustercache.ClusterCache
	requests RequestsFunc
	watcher  clustercache.SourceWatcher[ctrl.Request]
	versions sync.Map // client.ObjectKey -> serverVersion
	health   sync.Map // healthKey -> health
	failures sync.Map // client.ObjectKey -> toldFailure
	// kubeconfigs are those with which connections are made.
	kubeconfigs *kubeconfigReader
	// wake reconciles the control planes of clusters to which no connection could be made.
	wake   chan event.GenericEvent
	unread sync.Map // client.ObjectKey -> since when its health cannot be read
	now    func() time.Time
}

// Options are the parameters of NewClusters.
type Options struct {
	// UserAgent of the connections.
	UserAgent string
	// Selected tells whether a Cluster is to be observed: its control plane is one that this manager reconciles.
	Selected func(ctx context.Context, cluster *clusterv1.Cluster) (bool, error)
	// Requests maps a Cluster to its control plane.
	Requests RequestsFunc
}

// tunable is what the cache of connections offers besides its interface. Cluster API has no option for it.
type tunable interface {
	SetConnectionCreationRetryInterval(interval time.Duration)
	DisablePrivateKeyGeneration()
}

// NewClusters sets up the connections to the installed clusters.
func NewClusters(ctx context.Context, mgr manager.Manager, options Options) (*Clusters, error) {
	c := &Clusters{
		requests: options.Requests,
		kubeconfigs: &kubeconfigReader{
			Reader:   mgr.GetCache(), // the client would read Secrets live
			live:     mgr.GetAPIReader(),
			selected: options.Selected,
			read:     map[client.ObjectKey]kubeconfig{},
		},
		wake: make(chan event.GenericEvent, wakeUps),
		now:  time.Now,
	}
	var err error
	c.cache, err = clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient: c.kubeconfigs,
		Client:       clustercache.ClientOptions{UserAgent: options.UserAgent},
		// Kinds that the cluster does not know yet must not be named here: no connection would be made before it does.
		Cache: clustercache.CacheOptions{ByObject: map[client.Object]cache.ByObject{
			&corev1.Node{}: {Transform: slimNode},
			kube.MetadataOf(kube.Secret): {
				Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}},
				Label:      labels.SelectorFromSet(labels.Set{managedByLabel: accountName}),
				Transform:  kube.StripMetadata(),
			},
		}},
	}, controller.Options{
		MaxConcurrentReconciles: connectors,
		LogConstructor:          c.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the connections to the workload clusters: %w", err)
	}
	if t, ok := c.cache.(tunable); ok {
		t.SetConnectionCreationRetryInterval(connectInterval)
		t.DisablePrivateKeyGeneration() // an RSA key for each cluster, which only a provider that talks to etcd needs
	}
	return c, nil
}

// logger is what the cache of connections logs with.
func (c *Clusters) logger(cluster *reconcile.Request) logr.Logger {
	if cluster == nil {
		return logr.Discard()
	}
	return logr.New(attempts{clusters: c, cluster: cluster.NamespacedName})
}

// Source of the events that a cluster's API server began or ceased to answer.
func (c *Clusters) Source(controllerName string) source.Source {
	return c.cache.GetClusterSource(controllerName, func(ctx context.Context, cluster client.Object) []ctrl.Request {
		return c.requests(ctx, client.ObjectKeyFromObject(cluster))
	}, clustercache.WatchForProbeFailure(GracePeriod))
}

// FailureSource is that of the events that the reason changed why a cluster cannot be connected to.
func (c *Clusters) FailureSource() source.Source {
	return source.Channel(c.wake, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []ctrl.Request {
		return c.requests(ctx, client.ObjectKeyFromObject(cluster))
	}))
}

// NotifyController makes the controller the one that reconciles on changes in workload clusters. It must be called before Observe.
func (c *Clusters) NotifyController(watcher clustercache.SourceWatcher[ctrl.Request]) {
	c.watcher = watcher
}
