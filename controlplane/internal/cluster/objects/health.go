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

// ClusterVersionKind and ClusterOperatorKind are the kinds of the objects in Observed.
const (
	ClusterVersionKind  = "ClusterVersion"
	ClusterOperatorKind = "ClusterOperator"
)

// Key names an object that reports the health of a cluster.
type Key struct{ Kind, Name string }

// EtcdOperator is the ClusterOperator that manages the members of etcd.
var EtcdOperator = Key{ClusterOperatorKind, "etcd"}

// ClusterVersion is the one ClusterVersion of a cluster. Observed are all objects that are read: the
// ClusterVersion, and the operators of the control plane.
var (
	ClusterVersion = Key{ClusterVersionKind, "version"}
	Observed       = [...]Key{ClusterVersion, EtcdOperator, {ClusterOperatorKind, "kube-apiserver"}}
)

// Health is the health that an OpenShift object reports.
type Health struct {
	// Problem describes why the object is not available. Empty: it is available.
	Problem string
	// RollsOut is true while a ClusterOperator rolls out another revision of its static Pods.
	RollsOut bool
	// Release is the release in a ClusterVersion. It is nil for other kinds.
	Release *Release
	// Etcd is the state of the members in ClusterOperator etcd.
	Etcd workload.EtcdOperator
}

// ReadHealth reads one object as a list, whose version is the start of the watch. The version is empty as long
// as the cluster does not have the kind.
func ReadHealth(ctx context.Context, c client.Client, key Key) (Health, string, error) {
	versions, operators := &configv1.ClusterVersionList{}, &configv1.ClusterOperatorList{}
	var list client.ObjectList = operators
	if key == ClusterVersion {
		list = versions
	}
	if err := c.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: key.Name}); client.IgnoreNotFound(err) != nil {
		return Health{}, "", fmt.Errorf("cannot read %s %s of the workload cluster: %w", key.Kind, key.Name, err)
	}
	switch {
	case len(versions.Items) > 0:
		return healthOfVersion(&versions.Items[0]), versions.ResourceVersion, nil
	case len(operators.Items) > 0:
		conditions := operators.Items[0].Status.Conditions
		found := Health{
			Problem:  unavailable("ClusterOperator "+key.Name, conditions),
			RollsOut: isTrue(conditions, configv1.OperatorProgressing),
		}
		if key == EtcdOperator {
			found.Etcd = etcdOf(conditions)
		}
		return found, operators.ResourceVersion, nil
	}
	return Health{Problem: fmt.Sprintf("the cluster has no %s %s yet", key.Kind, key.Name)}, list.GetResourceVersion(), nil
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

func healthOfVersion(version *configv1.ClusterVersion) Health {
	return Health{Problem: unavailable("ClusterVersion", version.Status.Conditions), Release: releaseOf(version)}
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
