package cluster

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	clusterVersionKind  = "ClusterVersion"
	clusterOperatorKind = "ClusterOperator"
)

// healthKey names an object that reports the health of a cluster.
type healthKey struct{ kind, name string }

// etcdOperator is the ClusterOperator that manages the members of etcd.
var etcdOperator = healthKey{clusterOperatorKind, "etcd"}

// clusterVersion is the one ClusterVersion of a cluster. observed are all objects that are read: the
// ClusterVersion, and the operators of the control plane.
var (
	clusterVersion = healthKey{clusterVersionKind, "version"}
	observed       = [...]healthKey{clusterVersion, etcdOperator, {clusterOperatorKind, "kube-apiserver"}}
)

// health is the health that an OpenShift object reports.
type health struct {
	// problem describes why the object is not available. Empty: it is available.
	problem string
	// rollsOut is true while a ClusterOperator rolls out another revision of its static Pods.
	rollsOut bool
	// release is the release in a ClusterVersion. It is nil for other kinds.
	release *release
	// etcd is the state of the members in ClusterOperator etcd.
	etcd facts.EtcdOperator
}

var (
	clusterVersions  = healthResource(clusterVersionKind, "clusterversions")
	clusterOperators = healthResource(clusterOperatorKind, "clusteroperators")
)

// healthResource returns the resource of an OpenShift kind. Its objects are numerous and large. Only the
// objects in observed are read, when they changed.
func healthResource(kind, plural string) resource {
	path := "/apis/" + configv1.GroupVersion.String() + "/" + plural
	return resource{
		name: kind + "s", path: path,
		read: func(ctx context.Context, c client.Client) (string, func(*connection), error) {
			return readHealth(ctx, c, kind)
		},
		readChange: func(ctx context.Context, _ *connection, access *conn.Access, e watchEvent) (func(*connection), error) {
			key := healthKey{kind, e.Object.Metadata.Name}
			at := slices.Index(observed[:], key)
			if at < 0 {
				return nil, nil
			}
			var h health
			err := access.Call(func(c client.Client) (err error) {
				h, _, err = healthOf(ctx, c, key)
				return err
			})
			return func(conn *connection) { conn.record(at, h) }, err
		},
	}
}

// readHealth reads the observed objects of a kind. The API server responds long before OpenShift's kinds are
// defined.
func readHealth(ctx context.Context, c client.Client, kind string) (string, func(*connection), error) {
	first, found := "", map[int]health{}
	for at, key := range observed {
		if key.kind != kind {
			continue
		}
		h, version, err := healthOf(ctx, c, key)
		if err != nil {
			return "", nil, err
		}
		if len(found) == 0 { // the watch repeats changes that happen while the other objects are read
			first = version
		}
		found[at] = h
	}
	return first, func(conn *connection) {
		for at, h := range found {
			conn.record(at, h)
		}
	}, nil
}

// record stores the health of an object. The caller holds the lock. A clock of the cluster that is ahead must
// not extend the grace period of a degraded etcd. A start in the future is replaced by the time of the first
// read.
func (c *connection) record(at int, h health) {
	before, now := c.health[at].etcd.DegradedSince, c.now()
	if h.etcd.DegradedSince.After(now) {
		h.etcd.DegradedSince = now
		if !before.IsZero() {
			h.etcd.DegradedSince = before
		}
	}
	c.health[at] = h
}

// healthOf reads one object as a list, whose version is the start of the watch. The version is empty as long
// as the cluster does not have the kind.
func healthOf(ctx context.Context, c client.Client, key healthKey) (health, string, error) {
	versions, operators := &configv1.ClusterVersionList{}, &configv1.ClusterOperatorList{}
	var list client.ObjectList = operators
	if key == clusterVersion {
		list = versions
	}
	if err := c.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: key.name}); client.IgnoreNotFound(err) != nil {
		return health{}, "", fmt.Errorf("cannot read %s %s of the workload cluster: %w", key.kind, key.name, err)
	}
	switch {
	case len(versions.Items) > 0:
		return healthOfVersion(&versions.Items[0]), versions.ResourceVersion, nil
	case len(operators.Items) > 0:
		conditions := operators.Items[0].Status.Conditions
		found := health{
			problem:  unavailable("ClusterOperator "+key.name, conditions),
			rollsOut: isTrue(conditions, configv1.OperatorProgressing),
		}
		if key == etcdOperator {
			found.etcd = etcdOf(conditions)
		}
		return found, operators.ResourceVersion, nil
	}
	return health{problem: fmt.Sprintf("the cluster has no %s %s yet", key.kind, key.name)}, list.GetResourceVersion(), nil
}

// etcdOf returns the state in the conditions of ClusterOperator etcd.
func etcdOf(conditions []configv1.ClusterOperatorStatusCondition) facts.EtcdOperator {
	etcd := facts.EtcdOperator{Known: true}
	for _, c := range conditions {
		is := c.Status == configv1.ConditionTrue
		switch c.Type {
		case configv1.OperatorAvailable:
			etcd.Available = is
		case configv1.OperatorProgressing:
			etcd.Progressing = is
		case configv1.OperatorDegraded:
			if is {
				etcd.DegradedSince, etcd.Degraded = c.LastTransitionTime.Time, messageOf(c)
			}
		}
	}
	return etcd
}

func healthOfVersion(version *configv1.ClusterVersion) health {
	return health{problem: unavailable("ClusterVersion", version.Status.Conditions), release: releaseOf(version)}
}

func isTrue(conditions []configv1.ClusterOperatorStatusCondition, conditionType configv1.ClusterStatusConditionType) bool {
	return slices.ContainsFunc(conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == conditionType && c.Status == configv1.ConditionTrue
	})
}

// unavailable describes why an object is not available. It is empty if the object is available.
func unavailable(what string, conditions []configv1.ClusterOperatorStatusCondition) string {
	for _, c := range conditions {
		if c.Type != configv1.OperatorAvailable {
			continue
		}
		if c.Status == configv1.ConditionTrue {
			return ""
		}
		if c.Reason != "" {
			return fmt.Sprintf("%s is not available (%s)", what, bound.Value(c.Reason))
		}
	}
	return what + " is not available"
}
