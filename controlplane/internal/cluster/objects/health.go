package objects

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// clusterVersionKind and clusterOperatorKind are the kinds of the objects in observed.
const (
	clusterVersionKind  = "ClusterVersion"
	clusterOperatorKind = "ClusterOperator"
)

// objectKey names an object that reports the health of a cluster.
type objectKey struct{ Kind, Name string }

// etcdOperator is the ClusterOperator that manages the members of etcd, apiServerOperator the one of the API servers.
var (
	etcdOperator      = objectKey{clusterOperatorKind, "etcd"}
	apiServerOperator = objectKey{clusterOperatorKind, "kube-apiserver"}
)

// clusterVersion is the one ClusterVersion of a cluster. observed are all objects that are read: the
// ClusterVersion, and the operators of the control plane.
var (
	clusterVersion = objectKey{clusterVersionKind, "version"}
	observed       = [...]objectKey{clusterVersion, etcdOperator, apiServerOperator}
)

// health is the health that an OpenShift object reports.
type health struct {
	// Problem describes why the object is not available. Empty: it is available.
	Problem string
	// RollsOut is true while a ClusterOperator rolls out another revision of its static Pods.
	RollsOut bool
	// Release is the release in a ClusterVersion. It is nil for other kinds.
	Release *release
	// Etcd is the state of the members in ClusterOperator etcd.
	Etcd workload.EtcdOperator
	// APIServers is the Kubernetes version of all API servers in ClusterOperator kube-apiserver.
	APIServers string
}

var (
	clusterVersions  = healthResource(clusterVersionKind, "clusterversions")
	clusterOperators = healthResource(clusterOperatorKind, "clusteroperators")
)

// healthResource returns the resource of an OpenShift kind. Its objects are numerous and large. Only the
// objects in observed are read, when they changed.
func healthResource(kind, plural string) Resource {
	path := "/apis/" + configv1.GroupVersion.String() + "/" + plural
	return Resource{
		Name: kind + "s", Path: path,
		Read: func(ctx context.Context, c client.Client) (string, func(*State), error) {
			return readKind(ctx, c, kind)
		},
		readChange: func(ctx context.Context, cluster Cluster, e Event) (func(*State), error) {
			key := objectKey{Kind: kind, Name: e.Object.Metadata.Name}
			at := slices.Index(observed[:], key)
			if at < 0 {
				return nil, nil
			}
			var h health
			err := cluster.Call(func(c client.Client) (err error) {
				h, _, err = readObject(ctx, c, key)
				return err
			})
			return func(s *State) { s.record(at, h) }, err
		},
	}
}

// readKind reads the observed objects of a kind. The API server responds long before OpenShift's kinds are
// defined.
func readKind(ctx context.Context, c client.Client, kind string) (string, func(*State), error) {
	first, found := "", map[int]health{}
	for at, key := range observed {
		if key.Kind != kind {
			continue
		}
		h, version, err := readObject(ctx, c, key)
		if err != nil {
			return "", nil, err
		}
		if len(found) == 0 { // the watch repeats changes that happen while the other objects are read
			first = version
		}
		found[at] = h
	}
	return first, func(s *State) {
		for at, h := range found {
			s.record(at, h)
		}
	}, nil
}

// readObject reads one object as a list, whose version is the start of the watch. The version is empty as long
// as the cluster does not have the kind.
func readObject(ctx context.Context, c client.Client, key objectKey) (health, string, error) {
	versions, operators := &configv1.ClusterVersionList{}, &configv1.ClusterOperatorList{}
	var list client.ObjectList = operators
	if key == clusterVersion {
		list = versions
	}
	if err := c.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: key.Name}); client.IgnoreNotFound(err) != nil {
		return health{}, "", fmt.Errorf("cannot read %s %s of the workload cluster: %w", key.Kind, key.Name, err)
	}
	switch {
	case len(versions.Items) > 0:
		return healthOfVersion(&versions.Items[0]), versions.ResourceVersion, nil
	case len(operators.Items) > 0:
		conditions := operators.Items[0].Status.Conditions
		found := health{
			Problem:  unavailable("ClusterOperator "+key.Name, conditions),
			RollsOut: isTrue(conditions, configv1.OperatorProgressing),
		}
		switch key {
		case etcdOperator:
			found.Etcd = etcdOf(conditions)
		case apiServerOperator:
			found.APIServers = apiServersVersion(operators.Items[0].Status.Versions)
		}
		return found, operators.ResourceVersion, nil
	}
	return health{Problem: fmt.Sprintf("the cluster has no %s %s yet", key.Kind, key.Name)}, list.GetResourceVersion(), nil
}

// apiServersVersion returns the version of the operand kube-apiserver. The operator sets it when all Pods of the API
// servers have the same image (staticpodstate controller of openshift/library-go).
func apiServersVersion(versions []configv1.OperandVersion) string {
	for _, v := range versions {
		if v.Name == apiServerOperator.Name {
			return bound.Identifier(v.Version, LongestVersion)
		}
	}
	return ""
}

// etcdOf returns the state in the conditions of ClusterOperator etcd.
func etcdOf(conditions []configv1.ClusterOperatorStatusCondition) workload.EtcdOperator {
	etcd := workload.EtcdOperator{Known: true}
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
	return health{Problem: unavailable("ClusterVersion", version.Status.Conditions), Release: releaseOf(version)}
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
