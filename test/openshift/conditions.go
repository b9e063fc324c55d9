package openshift

import (
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of ClusterOperators.
const (
	Etcd          = "etcd"
	KubeAPIServer = "kube-apiserver"
	MachineConfig = "machine-config"
)

// Condition is a condition of a ClusterOperator or of the ClusterVersion. A condition without status is removed.
type Condition struct {
	Type            configv1.ClusterStatusConditionType
	Status          configv1.ConditionStatus
	Reason, Message string
}

// NewCondition returns a condition whose status is True or False.
func NewCondition(kind configv1.ClusterStatusConditionType, is bool, reason, message string) Condition {
	c := Condition{Type: kind, Status: configv1.ConditionFalse, Reason: reason, Message: message}
	if is {
		c.Status = configv1.ConditionTrue
	}
	return c
}

// SetCondition sets or removes a condition, and reports whether that changes the conditions.
func SetCondition(conditions *[]configv1.ClusterOperatorStatusCondition, c Condition) (changed bool) {
	i := slices.IndexFunc(*conditions, func(old configv1.ClusterOperatorStatusCondition) bool { return old.Type == c.Type })
	wanted := configv1.ClusterOperatorStatusCondition{
		Type: c.Type, Status: c.Status, LastTransitionTime: metav1.Now(), Reason: c.Reason, Message: c.Message,
	}
	switch {
	case c.Status == "" && i < 0:
		return false
	case c.Status == "":
		*conditions = slices.Delete(*conditions, i, i+1)
		return true
	case i < 0:
		*conditions = append(*conditions, wanted)
		return true
	}
	old := (*conditions)[i]
	if old.Status == wanted.Status {
		wanted.LastTransitionTime = old.LastTransitionTime
	}
	(*conditions)[i] = wanted
	return !equality.Semantic.DeepEqual(old, wanted)
}

// FindCondition returns a condition of a ClusterOperator, or nil.
func FindCondition(operator *configv1.ClusterOperator, kind configv1.ClusterStatusConditionType) *configv1.ClusterOperatorStatusCondition {
	for i := range operator.Status.Conditions {
		if operator.Status.Conditions[i].Type == kind {
			return &operator.Status.Conditions[i]
		}
	}
	return nil
}

// WriteConditions writes the conditions of a ClusterOperator, if they change. The last one of each type counts.
func WriteConditions(ctx context.Context, api client.Client, operator *configv1.ClusterOperator, conditions []Condition) error {
	changed := false
	for i, c := range conditions {
		if slices.ContainsFunc(conditions[i+1:], func(later Condition) bool { return later.Type == c.Type }) {
			continue // otherwise the time of the transition would change
		}
		changed = SetCondition(&operator.Status.Conditions, c) || changed
	}
	if !changed {
		return nil
	}
	if err := api.Status().Update(ctx, operator); err != nil {
		return fmt.Errorf("cannot write the status of ClusterOperator %s: %w", operator.Name, err)
	}
	return nil
}
