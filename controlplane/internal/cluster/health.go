package cluster

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

const (
	clusterVersionKind  = "ClusterVersion"
	clusterOperatorKind = "ClusterOperator"
)

// healthKey names one of the objects that say how a cluster is.
type healthKey struct{ kind, name string }

// etcdOperator is the ClusterOperator that knows the members of etcd.
var etcdOperator = healthKey{clusterOperatorKind, "etcd"}

// clusterVersion is the one ClusterVersion of a cluster. observed are all that are read: the operators are those of the control plane, whose health is its health.
var (
	clusterVersion = healthKey{clusterVersionKind, "version"}
	observed       = [...]healthKey{clusterVersion, etcdOperator, {clusterOperatorKind, "kube-apiserver"}}
)

// health is what an OpenShift object says of the cluster.
type health struct {
	// problem says, for people, why it is not available. Empty: it is.
	problem string
	// rollsOut is true while a ClusterOperator brings its static Pods to another revision.
	rollsOut bool
	// release is what a ClusterVersion says; nil: it is none.
	release *release
	// etcd is what ClusterOperator etcd says of the members.
	etcd facts.EtcdOperator
}

var (
	clusterVersions  = healthResource(clusterVersionKind, "clusterversions")
	clusterOperators = healthResource(clusterOperatorKind, "clusteroperators")
)

// healthResource is one of OpenShift's kinds. Its objects are large, and there are many: the few that matter are read when they changed.
func healthResource(kind, plural string) resource {
	path := "/apis/" + configv1.GroupVersion.String() + "/" + plural
	return resource{
		name: kind + "s", path: path,
		read: func(ctx context.Context, c client.Client) (string, func(*connection), error) {
			return readHealth(ctx, c, kind)
		},
		take: func(ctx context.Context, _ *connection, access *access, e watchEvent) (func(*connection), error) {
			key := healthKey{kind, e.Object.Metadata.Name}
			at := slices.Index(observed[:], key)
			if at < 0 {
				return nil, nil
			}
			var h health
			err := access.call(func(c client.Client) (err error) {
				h, _, err = healthOf(ctx, c, key)
				return err
			})
			return func(l *connection) { l.record(at, h) }, err
		},
	}
}

// readHealth reads what is observed of a kind. The API server answers long before OpenShift's kinds are defined.
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
		if len(found) == 0 { // what changes while the others are read is told once more
			first = version
		}
		found[at] = h
	}
	return first, func(l *connection) {
		for at, h := range found {
			l.record(at, h)
		}
	}, nil
}

// record keeps what an object reports; the caller holds the lock. A clock of the cluster that is ahead must not lengthen the grace of a degraded etcd: what begins in the future began when it was
// first read.
func (l *connection) record(at int, h health) {
	before, now := l.health[at].etcd.DegradedSince, l.now()
	if h.etcd.DegradedSince.After(now) {
		h.etcd.DegradedSince = now
		if !before.IsZero() {
			h.etcd.DegradedSince = before
		}
	}
	l.health[at] = h
}

// healthOf reads one object, as a list of it alone: that tells also the version from which on the kind is to be watched. There is none as long as the cluster does not know the kind.
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
		stated := operators.Items[0].Status.Conditions
		found := health{problem: unavailable("ClusterOperator "+key.name, stated), rollsOut: isTrue(stated, configv1.OperatorProgressing)}
		if key == etcdOperator {
			found.etcd = etcdOf(stated)
		}
		return found, operators.ResourceVersion, nil
	}
	return health{problem: fmt.Sprintf("the cluster has no %s %s yet", key.kind, key.name)}, list.GetResourceVersion(), nil
}

// etcdOf is what the conditions of ClusterOperator etcd say.
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
				etcd.DegradedSince, etcd.Degraded = c.LastTransitionTime.Time, saying(c)
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
			return fmt.Sprintf("%s is not available (%s)", what, bound.Value(c.Reason))
		}
	}
	return what + " is not available"
}
