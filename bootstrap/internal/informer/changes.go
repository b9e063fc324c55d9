package informer

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Changed returns a predicate that passes the updates with different metadata, or for which differ returns true.
func Changed[T client.Object](differ func(before, after T) bool) predicate.Predicate {
	return kube.Changes(func(before, after T) bool { return metadataDiffers(before, after) || differ(before, after) })
}

// metadataDiffers compares all metadata that clients other than the API server write. The generation covers the
// spec of the kinds that count generations.
func metadataDiffers(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
		!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
		!equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// MachineChanges are the changes of whether the Machine has a Node, and of the state of the Node.
var MachineChanges = Changed(func(before, after *clusterv1.Machine) bool {
	differs := before.Status.NodeRef.IsDefined() != after.Status.NodeRef.IsDefined()
	for _, t := range []string{clusterv1.MachineNodeReadyCondition, clusterv1.MachineNodeHealthyCondition} {
		differs = differs || conditions.IsTrue(before, t) != conditions.IsTrue(after, t)
	}
	return differs
})

// AgentChanges are the changes of the fields of an Agent that the cache keeps: see [TrimAgent]. A change of the
// percentage alone does not count: the percentage is reported together with the stage.
var AgentChanges = Changed(func(before, after *aiv1beta1.Agent) bool {
	was, is := before.Status, after.Status
	was.Progress.InstallationPercentage, is.Progress.InstallationPercentage = 0, 0
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(was, is)
})

// HostChanges are the changes of the fields of a host that the cache keeps: see [trimHost].
var HostChanges = Changed(func(before, after *metal3.Host) bool {
	return !equality.Semantic.DeepEqual(before.Status, after.Status)
})

// InfraMachineChanges are the changes of the few fields of the contract, and of CAPM3's metadata.
var InfraMachineChanges = Changed(func(before, after *unstructured.Unstructured) bool {
	for _, field := range [][]string{{"status", "ready"}, {"status", "initialization"}, {"status", "metaData"}} {
		was, _, _ := unstructured.NestedFieldNoCopy(before.Object, field...)
		is, _, _ := unstructured.NestedFieldNoCopy(after.Object, field...)
		if !equality.Semantic.DeepEqual(was, is) {
			return true
		}
	}
	return false
})

// ClusterChanges are the changes of a Cluster that matter to its hosts.
var ClusterChanges = kube.Changes(func(before, after *clusterv1.Cluster) bool {
	return ptr.Deref(before.Spec.Paused, false) != ptr.Deref(after.Spec.Paused, false) ||
		before.Spec.ControlPlaneRef != after.Spec.ControlPlaneRef ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		ptr.Deref(before.Status.Initialization.InfrastructureProvisioned,
			false) != ptr.Deref(after.Status.Initialization.InfrastructureProvisioned, false)
})

// InstallationChanges are the changes of an AgentClusterInstall that matter to its hosts. The progress does not.
var InstallationChanges = kube.Changes(func(before, after *hiveext.AgentClusterInstall) bool {
	was, is := assisted.Observe(before), assisted.Observe(after)
	return was.AcceptsHosts != is.AcceptsHosts || was.Phase != is.Phase ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec.ProvisionRequirements, after.Spec.ProvisionRequirements) ||
		!equality.Semantic.DeepEqual(before.Spec.MirrorRegistryRef, after.Spec.MirrorRegistryRef)
})
