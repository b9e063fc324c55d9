// Package informer defines what the informers of the control plane provider cache, by which indexes objects are found, and
// which changes trigger a reconcile.
package informer

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/capacity"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// TemplateChanges are changes of the content, and removals of owner references.
var TemplateChanges = kube.Changes(func(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || len(before.GetOwnerReferences()) > len(after.GetOwnerReferences())
})

// RebootChanges are changes of the phase of a reboot.
var RebootChanges = kube.Changes(func(before, after *unstructured.Unstructured) bool {
	return metal3.RebootPhase(before) != metal3.RebootPhase(after)
})

// ClusterChanges are changes of the fields of a Cluster that are read: the spec, two annotations, and few fields of the status.
var ClusterChanges = predicate.Or(predicate.GenerationChangedPredicate{}, kube.Changes(func(before, after *clusterv1.Cluster) bool {
	changed := func(annotation string) bool { return before.Annotations[annotation] != after.Annotations[annotation] }
	return slices.ContainsFunc(clusterAnnotations, changed) ||
		!slices.Equal(workersPlan(before), workersPlan(after)) ||
		!equality.Semantic.DeepEqual(before.Status.Initialization, after.Status.Initialization) ||
		!equality.Semantic.DeepEqual(before.Status.FailureDomains, after.Status.FailureDomains)
}))

// DeploymentChanges are all changes but those of the status, of finalizers and of owner references.
var DeploymentChanges = predicate.Or(
	predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
)

// DrainRuleChanges are changes of the spec, and of the labels, which show the owner of the rule.
var DrainRuleChanges = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// MachineChanges are all changes of control-plane Machines, also the one that ends this role, and those of workers that
// concern fields that are read. The reason why the OpenshiftAssistedConfig of a worker is not ready is among these fields.
var MachineChanges = kube.Changes(func(before, after *clusterv1.Machine) bool {
	return util.IsControlPlaneMachine(before) || util.IsControlPlaneMachine(after) || before.Generation != after.Generation ||
		facts.NodeAway(before) != facts.NodeAway(after) ||
		workers.OwnedByKind(before, "MachineSet") != workers.OwnedByKind(after, "MachineSet") ||
		(len(before.OwnerReferences) == 0) != (len(after.OwnerReferences) == 0) || // the reason MachinesWithoutOwner ends with an owner
		before.Status.NodeRef != after.Status.NodeRef || // the version of a worker follows its kubelet
		facts.WaitsForNode(before) != facts.WaitsForNode(after) || versioning.UpdatesInPlace(before) != versioning.UpdatesInPlace(after) ||
		configReason(before) != configReason(after)
})

// configReason returns why the OpenshiftAssistedConfig of a Machine is ready or not ready.
func configReason(m *clusterv1.Machine) string {
	return conditions.GetReason(m, clusterv1.MachineBootstrapConfigReadyCondition)
}

// OwnerChanges are changes of the spec of MachineDeployments and MachineSets, and of the reason why Cluster API does not
// create their Machines.
func OwnerChanges[T interface {
	client.Object
	conditions.Getter
}]() predicate.Predicate {
	blockerChanges := kube.Changes(func(before, after T) bool { return workers.Blocker(before) != workers.Blocker(after) })
	return predicate.Or(predicate.GenerationChangedPredicate{}, blockerChanges)
}

// CapacityChanges are changes that affect the capacity that a MachineDeployment states to the cluster autoscaler. Other
// MachineDeployments, and changes of the status, do not pass.
var CapacityChanges = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return cachedCapacity(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.MachineDeployment)
		after, ok2 := e.ObjectNew.(*clusterv1.MachineDeployment)
		return ok && ok2 && (cachedCapacity(before) || cachedCapacity(after)) &&
			(!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
				before.Labels[clusterv1.WatchLabel] != after.Labels[clusterv1.WatchLabel] ||
				before.Spec.Template.Spec.InfrastructureRef != after.Spec.Template.Spec.InfrastructureRef)
	},
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// statesCapacity reports whether a MachineDeployment requests its capacity, or has annotations of this provider. own are
// the managed fields of this provider.
func statesCapacity(annotations map[string]string, own []metav1.ManagedFieldsEntry) bool {
	_, requested := annotations[controlplanev1.AutoscalingCapacityAnnotation]
	_, recorded := annotations[controlplanev1.StatedCapacityAnnotation]
	return requested || recorded || len(own) > 0
}

// cachedCapacity is statesCapacity for an object of the cache, which keeps only our own managed fields.
func cachedCapacity(d client.Object) bool {
	return statesCapacity(d.GetAnnotations(), d.GetManagedFields())
}

// HostChanges are changes of the fields of a BareMetalHost that the cache keeps.
var HostChanges = kube.Changes(func(before, after *metal3.Host) bool {
	return metal3.NeverChosen(before) != metal3.NeverChosen(after) || capacity.NotInspected(before) != capacity.NotInspected(after) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Status.HardwareDetails, after.Status.HardwareDetails)
})

// HardwareChanges are changes of the size of a host.
var HardwareChanges = kube.Changes(func(before, after *metal3.HardwareData) bool {
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec)
})

// AgentChanges are changes of the spec of a host, which links the host to its Node, and of the fields that conditions
// report. These are its state, its stage, the start of the stage, and the reason of a failure.
var AgentChanges = kube.Changes(func(before, after *aiv1beta1.Agent) bool {
	was, is := &before.Status.Progress, &after.Status.Progress
	return before.Generation != after.Generation || before.Status.DebugInfo.State != after.Status.DebugInfo.State ||
		was.CurrentStage != is.CurrentStage || !was.StageStartTime.Equal(is.StageStartTime) ||
		(installed.Failing(after) && installed.Describe(before) != installed.Describe(after))
})
