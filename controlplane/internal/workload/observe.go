package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Operators of the control plane, whose health is that of the control plane.
var Operators = []string{"etcd", "kube-apiserver"}

// Facts are what is known of an installed cluster.
type Facts struct {
	// Connected is true while the cluster's API server answers.
	Connected bool
	// LastSuccess is when it answered last; zero when it has not since this process runs.
	LastSuccess time.Time
	// Failure is why there is no connection; nil while there is one, or as long as none was tried.
	Failure *Failure
	// KubernetesVersion is what the API server reports.
	KubernetesVersion string
	// OpenShiftVersion is the release that was completed last, without leading v. Empty before the first.
	OpenShiftVersion string
	// ReleaseImage is the image of that release.
	ReleaseImage string
	// Unhealthy says, for people, what of the control plane is not available. Empty: nothing, if it could be read.
	Unhealthy []string
	// UnreadSince is since when the API server answers but the health cannot be read; zero when it was read.
	UnreadSince time.Time
	// Nodes of the cluster.
	Nodes []Node
	// Tokens are the UIDs of the Secrets in the cluster that our tokens are bound to; nil: they could not be read.
	Tokens sets.Set[types.UID]
}

// Node is what matters of a Node.
type Node struct {
	Name       string
	UID        types.UID
	ProviderID string
	Labels     map[string]string
}

// Observe returns what is known of the cluster, from caches that watch it. A cluster that cannot be reached is no error.
func (c *Clusters) Observe(ctx context.Context, cluster client.ObjectKey) (Facts, error) {
	facts := Facts{LastSuccess: c.cache.GetHealthCheckingState(ctx, cluster).LastProbeSuccessTime}
	reader, err := c.cache.GetReader(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		facts.Failure = c.failure(cluster)
		return facts, nil
	}
	if err != nil {
		return facts, fmt.Errorf("cannot read the workload cluster: %w", err)
	}
	facts.Connected = true
	c.forgetAttempts(cluster)
	if err := c.read(ctx, cluster, reader, &facts); err != nil {
		since, _ := c.unread.LoadOrStore(cluster, c.now())
		facts.UnreadSince = since.(time.Time) //nolint:forcetypeassert // nothing else is stored
		return facts, err
	}
	c.unread.Delete(cluster)
	facts.KubernetesVersion, err = c.kubernetesVersion(ctx, cluster, facts.OpenShiftVersion)
	return facts, err
}

// read reads what is known of a cluster whose API server answers.
func (c *Clusters) read(ctx context.Context, cluster client.ObjectKey, reader client.Reader, facts *Facts) error {
	if err := c.watch(ctx, cluster); err != nil {
		return err
	}
	if err := readNodes(ctx, reader, facts); err != nil {
		return err
	}
	tokens, err := readTokens(ctx, reader)
	if err != nil {
		return err
	}
	facts.Tokens = tokens
	return c.readHealth(ctx, cluster, reader, facts)
}

// watch makes changes in the workload cluster reconcile its control plane. Watches that exist already cost nothing.
func (c *Clusters) watch(ctx context.Context, cluster client.ObjectKey) error {
	toControlPlane := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []ctrl.Request {
		return c.requests(ctx, cluster)
	})
	for _, w := range []clustercache.WatcherOptions{
		{Name: "nodes", Kind: &corev1.Node{}, Predicates: nodeChanges},
		{Name: "tokens", Kind: kube.MetadataOf(kube.Secret), Predicates: deletions},
		{Name: "clusterversion", Kind: metadataOf(clusterVersionKind), Predicates: observedNames},
		{Name: "clusteroperators", Kind: metadataOf(clusterOperatorKind), Predicates: observedNames},
	} {
		w.Watcher, w.EventHandler = c.watcher, toControlPlane
		if err := c.cache.Watch(ctx, cluster, clustercache.NewWatcher(w)); err != nil && !errors.Is(err, clustercache.ErrClusterNotConnected) {
			return fmt.Errorf("cannot watch the workload cluster: %w", err)
		}
	}
	return nil
}

func readNodes(ctx context.Context, reader client.Reader, facts *Facts) error {
	nodes := &corev1.NodeList{}
	if err := reader.List(ctx, nodes); err != nil {
		return fmt.Errorf("cannot list the Nodes of the workload cluster: %w", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		facts.Nodes = append(facts.Nodes, Node{Name: n.Name, UID: n.UID, ProviderID: n.Spec.ProviderID, Labels: n.Labels})
	}
	return nil
}

type serverVersion struct{ openShift, kubernetes string }

// kubernetesVersion asks the API server for its version, again only after another OpenShift release was completed.
func (c *Clusters) kubernetesVersion(ctx context.Context, cluster client.ObjectKey, openShift string) (string, error) {
	if known, ok := c.versions.Load(cluster); ok && known.(serverVersion).openShift == openShift { //nolint:forcetypeassert // nothing else is stored
		return known.(serverVersion).kubernetes, nil //nolint:forcetypeassert // nothing else is stored
	}
	config, err := c.cache.GetRESTConfig(ctx, cluster)
	if errors.Is(err, clustercache.ErrClusterNotConnected) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the workload cluster: %w", err)
	}
	asker, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("cannot ask the workload cluster for its version: %w", err)
	}
	version, err := asker.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("cannot ask the workload cluster for its version: %w", err)
	}
	c.versions.Store(cluster, serverVersion{openShift: openShift, kubernetes: version.GitVersion})
	return version.GitVersion, nil
}

// forgetAttempts drops what is remembered for the next attempt to connect: credentials lie in memory no longer than they are needed.
func (c *Clusters) forgetAttempts(cluster client.ObjectKey) {
	c.failures.Delete(cluster)
	c.kubeconfigs.forget(kubeconfigOf(cluster))
}

// Forget drops what is remembered of a cluster that is gone.
func (c *Clusters) Forget(cluster client.ObjectKey) {
	c.forgetAttempts(cluster)
	c.versions.Delete(cluster)
	c.unread.Delete(cluster)
	c.health.Delete(healthKey{cluster, clusterVersionKind, clusterVersionName})
	for _, name := range Operators {
		c.health.Delete(healthKey{cluster, clusterOperatorKind, name})
	}
}
