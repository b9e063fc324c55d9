package controlplane

import (
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// templateChanges are those of the content, and the going of owner references.
var templateChanges = kube.Changes(func(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() || len(before.GetOwnerReferences()) > len(after.GetOwnerReferences())
})

// rebootChanges are those of how far the reboots of a host are.
var rebootChanges = kube.Changes(func(before, after *unstructured.Unstructured) bool {
	return metal3.RebootPhase(before) != metal3.RebootPhase(after)
})

// clusterChanges are those of what is read of a Cluster, of whose status that is little.
var clusterChanges = predicate.Or(predicate.GenerationChangedPredicate{}, kube.Changes(func(before, after *clusterv1.Cluster) bool {
	return !equality.Semantic.DeepEqual(before.Status.Initialization, after.Status.Initialization) ||
		!equality.Semantic.DeepEqual(before.Status.FailureDomains, after.Status.FailureDomains)
}))

// deploymentChanges are all but those of the status, and the coming and going of finalizers and owners of others.
var deploymentChanges = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})

// drainRuleChanges are those of what shows whose rule it is, and of what it states.
var drainRuleChanges = predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})

// machineChanges are all of control-plane Machines, and of workers those of what is read of them: also why their
// OpenshiftAssistedConfig is not ready.
var machineChanges = kube.Changes(func(before, after *clusterv1.Machine) bool {
	_, controlPlane := after.Labels[clusterv1.MachineControlPlaneLabel]
	return controlPlane || before.Generation != after.Generation ||
		facts.NodeAway(before) != facts.NodeAway(after) || workers.OwnedByKind(before, "MachineSet") != workers.OwnedByKind(after, "MachineSet") ||
		(len(before.OwnerReferences) == 0) != (len(after.OwnerReferences) == 0) || // MachinesWithoutOwner waits for it
		facts.WaitsForNode(before) != facts.WaitsForNode(after) || facts.UpdatesInPlace(before) != facts.UpdatesInPlace(after) ||
		conditions.GetReason(before, clusterv1.MachineBootstrapConfigReadyCondition) != conditions.GetReason(after, clusterv1.MachineBootstrapConfigReadyCondition)
})

// ownerChanges are those of the spec of MachineDeployments and MachineSets, and of why Cluster API does not create their Machines.
func ownerChanges[T interface {
	client.Object
	conditions.Getter
}]() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, kube.Changes(func(before, after T) bool { return workers.Blocker(before) != workers.Blocker(after) }))
}

// agentChanges are those of what the conditions tell of a host, how far it is, and since when, among them, and of what
// links it to its Node.
var agentChanges = kube.Changes(func(before, after *aiv1beta1.Agent) bool {
	return before.Generation != after.Generation || before.Status.DebugInfo.State != after.Status.DebugInfo.State ||
		before.Status.Progress.CurrentStage != after.Status.Progress.CurrentStage || !before.Status.Progress.StageStartTime.Equal(after.Status.Progress.StageStartTime) ||
		(status.Failing(after) && status.Describe(before) != status.Describe(after))
})
