// Package contract holds the parts of Cluster API's provider contract that are pure functions.
package contract

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
)

// PausedCondition returns the condition Paused of an object, which is paused by its own annotation or by its
// Cluster; cluster may be nil. The caller writes it together with the rest of the status, in one request.
func PausedCondition(cluster *clusterv1.Cluster, obj metav1.Object) metav1.Condition {
	var reasons []string
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) {
		reasons = append(reasons, "Cluster spec.paused is set to true")
	}
	if annotations.HasPaused(obj) {
		reasons = append(reasons, "the object has the annotation "+clusterv1.PausedAnnotation)
	}
	condition := metav1.Condition{
		Type:               clusterv1.PausedCondition,
		Status:             metav1.ConditionFalse,
		Reason:             clusterv1.NotPausedReason,
		ObservedGeneration: obj.GetGeneration(),
	}
	if len(reasons) > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, clusterv1.PausedReason
		condition.Message = strings.Join(reasons, ", ")
	}
	return condition
}
