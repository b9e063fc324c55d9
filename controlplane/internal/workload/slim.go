package workload

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// slimNode keeps of a Node what is read of it: the Nodes of all installed clusters lie in the memory of one manager.
func slimNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	return &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{ProviderID: node.Spec.ProviderID},
	}, nil
}

// nodeChanges passes on the changes that decide something; heartbeats do not.
var nodeChanges = []predicate.Predicate{predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	a, okA := e.ObjectOld.(*corev1.Node)
	b, okB := e.ObjectNew.(*corev1.Node)
	return okA && okB && (a.Spec.ProviderID != b.Spec.ProviderID || !maps.Equal(a.Labels, b.Labels))
}}}

// deletions passes on what goes.
var deletions = []predicate.Predicate{predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}}

// observedNames passes on the objects whose health is read.
var observedNames = []predicate.Predicate{predicate.NewPredicateFuncs(func(obj client.Object) bool {
	return obj.GetName() == clusterVersionName || slices.Contains(Operators, obj.GetName())
})}
