package workload

import (
	"context"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

const (
	clusterVersionKind  = "ClusterVersion"
	clusterOperatorKind = "ClusterOperator"
	// clusterVersionName is the name of the one ClusterVersion of a cluster.
	clusterVersionName = "version"
)

// health is what an OpenShift object says of the cluster.
type health struct {
	resourceVersion string
	// problem says, for people, why it is not available. Empty: it is.
	problem string
	// completed is, of a ClusterVersion, the release that was completed last, image its image.
	completed, image string
}

type healthKey struct {
	cluster    client.ObjectKey
	kind, name string
}

// metadataOf is an object of an OpenShift kind of which only the metadata is cached. The objects are large, and there are many of them in each
// cluster; the few that matter are read from the cluster itself when their version has changed.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	return kube.MetadataOf(configv1.GroupVersion.WithKind(kind))
}

// readHealth reads the release of the cluster and the health of its control plane.
func (c *Clusters) readHealth(ctx context.Context, cluster client.ObjectKey, cached client.Reader, facts *Facts) error {
	version, err := c.healthOf(ctx, healthKey{cluster, clusterVersionKind, clusterVersionName}, cached, c.readClusterVersion)
	if err != nil {
		return err
	}
	facts.OpenShiftVersion, facts.ReleaseImage = version.completed, version.image
	facts.addProblem(version)
	for _, name := range Operators {
		operator, err := c.healthOf(ctx, healthKey{cluster, clusterOperatorKind, name}, cached, c.readOperator)
		if err != nil {
			return err
		}
		facts.addProblem(operator)
	}
	return nil
}

func (f *Facts) addProblem(h health) {
	if h.problem != "" {
		f.Unhealthy = append(f.Unhealthy, h.problem)
	}
}

// healthOf reads an object if it is newer than what is known of it. The API server answers long before OpenShift's kinds are defined.
func (c *Clusters) healthOf(ctx context.Context, key healthKey, cached client.Reader, readLive func(context.Context, healthKey, client.Reader) (health, error)) (health, error) {
	metadata := metadataOf(key.kind)
	err := cached.Get(ctx, client.ObjectKey{Name: key.name}, metadata)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return health{problem: fmt.Sprintf("the cluster has no %s %s yet", key.kind, key.name)}, nil
	}
	if err != nil {
		return health{}, fmt.Errorf("cannot read %s %s of the workload cluster: %w", key.kind, key.name, err)
	}
	if known, ok := c.health.Load(key); ok && known.(health).resourceVersion == metadata.ResourceVersion { //nolint:forcetypeassert // nothing else is stored
		return known.(health), nil //nolint:forcetypeassert // nothing else is stored
	}
	live, err := c.cache.GetUncachedClient(ctx, key.cluster)
	if err != nil {
		return health{}, fmt.Errorf("cannot read the workload cluster: %w", err)
	}
	found, err := readLive(ctx, key, live)
	if err != nil {
		return health{}, fmt.Errorf("cannot read %s %s of the workload cluster: %w", key.kind, key.name, err)
	}
	c.health.Store(key, found)
	return found, nil
}

func (c *Clusters) readClusterVersion(ctx context.Context, key healthKey, live client.Reader) (health, error) {
	version := &configv1.ClusterVersion{}
	if err := live.Get(ctx, client.ObjectKey{Name: key.name}, version); err != nil {
		return health{}, err
	}
	return healthOfVersion(version), nil
}

func healthOfVersion(version *configv1.ClusterVersion) health {
	h := health{resourceVersion: version.ResourceVersion, problem: unavailable("ClusterVersion", version.Status.Conditions)}
	for _, entry := range version.Status.History { // newest first
		if entry.State == configv1.CompletedUpdate {
			h.completed, h.image = entry.Version, entry.Image
			break
		}
	}
	return h
}

func (c *Clusters) readOperator(ctx context.Context, key healthKey, live client.Reader) (health, error) {
	operator := &configv1.ClusterOperator{}
	if err := live.Get(ctx, client.ObjectKey{Name: key.name}, operator); err != nil {
		return health{}, err
	}
	return health{
		resourceVersion: operator.ResourceVersion,
		problem:         unavailable("ClusterOperator "+key.name, operator.Status.Conditions),
	}, nil
}

// unavailable says that an object is not available, and why; it is empty when it is.
func unavailable(what string, conditions []configv1.ClusterOperatorStatusCondition) string {
	for _, c := range conditions {
		if c.Type != configv1.OperatorAvailable {
			continue
		}
		if c.Status == configv1.ConditionTrue {
			return ""
		}
		if c.Reason != "" {
			return fmt.Sprintf("%s is not available (%s)", what, c.Reason)
		}
	}
	return what + " is not available"
}
