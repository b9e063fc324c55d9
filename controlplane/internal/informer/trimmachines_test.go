package informer

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/capacity"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/machines"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

func machineCondition(kind string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Reason", Message: "message", LastTransitionTime: metav1.Now()}
}

func TestControlPlaneKeepsAllButForeignManagedFields(t *testing.T) {
	kept := controlPlane()
	kept.Annotations = map[string]string{"a": "b"}
	kept.Finalizers, kept.Status.Conditions = []string{"f"}, []metav1.Condition{machineCondition("Available")}
	whole := kept.DeepCopy()
	whole.Annotations[corev1.LastAppliedConfigAnnotation], whole.ManagedFields = "large", []metav1.ManagedFieldsEntry{others}
	NewWithT(t).Expect(trimControlPlane(whole)).To(Equal(kept))
}

func TestClusterKeepsFieldsThatAreRead(t *testing.T) {
	kept := newCluster()
	kept.ObjectMeta, kept.Labels = identity(), nil
	kept.Spec.Paused = ptr.To(true)
	kept.Spec.Topology.Version = "4.19.3"
	kept.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "w", Replicas: ptr.To[int32](2)}}
	kept.Labels = nil
	kept.Annotations = map[string]string{
		clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation: "100", clusterv1.ClusterTopologyUpgradeStepAnnotation: "v1.32.7",
	}
	kept.Status.Workers = &clusterv1.WorkersStatus{
		UpgradePlan: []clusterv1.StatusUpgradePlanVersion{{Version: "v1.32.7"}, {Version: "v1.33.5"}},
	}
	whole := burdened(kept)
	whole.Status.Workers.Versions, whole.Status.Workers.Replicas = []clusterv1.StatusVersion{{Version: "v1.31.2"}}, ptr.To[int32](2)
	whole.Spec.InfrastructureRef.Name, whole.Spec.ClusterNetwork.ServiceDomain, whole.Status.Phase = "large", "large", "Provisioned"
	whole.Spec.Topology.ClassRef.Name, whole.Spec.Topology.Workers.MachineDeployments[0].Class = "large", "large"
	whole.Status.Conditions = []metav1.Condition{machineCondition("Available")}
	g := NewWithT(t)
	g.Expect(trimCluster(whole)).To(Equal(kept))
	whole.Status.Workers.UpgradePlan, kept.Status.Workers = nil, nil
	g.Expect(trimCluster(whole)).To(Equal(kept), "no upgrade is planned")
}

// Cluster API sets the next version of a control plane before it reports the plan.
func TestPlanOfWorkersTriggersReconcile(t *testing.T) {
	g := NewWithT(t)
	passes := func(before, after *clusterv1.WorkersStatus) bool {
		was, is := newCluster(), newCluster()
		was.Status.Workers, is.Status.Workers = before, after
		return ClusterChanges.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is})
	}
	planned := func(versions ...string) *clusterv1.WorkersStatus {
		status := &clusterv1.WorkersStatus{}
		for _, version := range versions {
			status.UpgradePlan = append(status.UpgradePlan, clusterv1.StatusUpgradePlanVersion{Version: version})
		}
		return status
	}
	g.Expect(passes(nil, planned("v1.32.7", "v1.33.5"))).To(BeTrue())
	g.Expect(passes(planned("v1.32.7", "v1.33.5"), planned("v1.33.5"))).To(BeTrue())
	g.Expect(passes(planned("v1.33.5"), planned("v1.33.5"))).To(BeFalse())
	g.Expect(passes(nil, &clusterv1.WorkersStatus{Replicas: ptr.To[int32](2)})).To(BeFalse(), "no field that is read")
}

func TestControlPlaneMachineKeepsFieldsThatAreApplied(t *testing.T) {
	g := NewWithT(t)
	kept := &clusterv1.Machine{
		ObjectMeta: identity(), Spec: clusterv1.MachineSpec{ClusterName: "cluster1", Version: "v4.19.3", ProviderID: "p", FailureDomain: "rack1"},
	}
	kept.OwnerReferences = []metav1.OwnerReference{{Kind: facts.ControlPlaneKind, UID: "cp-uid"}}
	kept.Annotations, kept.ManagedFields = map[string]string{clusterv1.DeleteMachineAnnotation: ""}, []metav1.ManagedFieldsEntry{applied}
	kept.Status.NodeRef.Name = "n"
	for _, read := range []string{
		clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineUpToDateCondition,
		clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		clusterv1.MachineBootstrapConfigReadyCondition, controlplanev1.EtcdMemberHealthyCondition,
	} {
		kept.Status.Conditions = append(kept.Status.Conditions, machineCondition(read))
	}
	whole := kept.DeepCopy()
	whole.Finalizers, whole.ManagedFields = []string{"f"}, []metav1.ManagedFieldsEntry{others, applied}
	whole.Status.Conditions = append(whole.Status.Conditions, machineCondition("Other"))
	why := machineCondition(clusterv1.MachineNodeReadyCondition) // the cause matters for a Machine that is being deleted
	kept.Status.Conditions, whole.Status.Conditions = append(kept.Status.Conditions, why), append(whole.Status.Conditions, why)
	whole.Status.Conditions[0].ObservedGeneration, whole.Status.Phase, whole.Status.Deprecated = 2, "Running",
		&clusterv1.MachineDeprecatedStatus{}
	g.Expect(trimMachine(whole)).To(Equal(kept), "the owner shows that the Machine is no worker")

	kept.OwnerReferences, kept.Labels[clusterv1.MachineControlPlaneLabel] = nil, ""
	whole.OwnerReferences, whole.Labels = nil, kept.Labels
	g.Expect(trimMachine(whole)).To(Equal(kept), "the label shows it as well")

	kept.DeletionTimestamp, whole.DeletionTimestamp = nil, nil
	kept.Status.Conditions[len(kept.Status.Conditions)-1] = metav1.Condition{
		Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionFalse, Reason: why.Reason,
	}
	g.Expect(trimMachine(whole)).To(Equal(kept), "the Machine is not being deleted")
}

func TestWorkerKeepsFieldsThatAreRead(t *testing.T) {
	g := NewWithT(t)
	kept := &clusterv1.Machine{
		ObjectMeta: identity(), Spec: clusterv1.MachineSpec{ClusterName: "cluster1", ProviderID: "p", Version: "v4.19.3"},
	}
	kept.Labels, kept.OwnerReferences = nil, []metav1.OwnerReference{{Kind: "MachineSet", UID: "2"}}
	kept.Spec.Bootstrap.ConfigRef.Kind, kept.Spec.InfrastructureRef.Name = workers.ConfigKind, "m"
	kept.Status.Conditions = []metav1.Condition{machineCondition(clusterv1.MachineBootstrapConfigReadyCondition)}
	whole := burdened(kept)
	kept.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	whole.Annotations[clusterv1.UpdateInProgressAnnotation] = ""
	kept.Status.NodeRef.Name, whole.Status.NodeRef.Name = "n", "n"
	whole.Spec.Bootstrap.ConfigRef.Name = "m"
	whole.Spec.Bootstrap.DataSecretName = ptr.To("m")
	whole.Status.Conditions = append(whole.Status.Conditions, machineCondition(clusterv1.MachineReadyCondition), metav1.Condition{
		Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue,
	})
	g.Expect(trimMachine(whole)).To(Equal(kept))
	whole.Status.Conditions[len(whole.Status.Conditions)-1].Status = metav1.ConditionUnknown
	kept.Status.Conditions = append(kept.Status.Conditions, metav1.Condition{
		Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionUnknown,
	})
	g.Expect(trimMachine(whole)).To(Equal(kept), "the condition shows that a Node is not Ready")

	updated := kept.DeepCopy()
	updated.Annotations = nil
	g.Expect(MachineChanges.Update(event.UpdateEvent{
		ObjectOld: kept, ObjectNew: updated,
	})).To(BeTrue(), "Cluster API does not wait for it any more")

	whole.Status.NodeRef.Name = ""
	awaiting := trimMachine(whole)
	g.Expect(facts.WaitsForNode(awaiting)).To(BeTrue(), "it has its bootstrap data, but no Node")
	g.Expect(MachineChanges.Update(event.UpdateEvent{ObjectOld: awaiting, ObjectNew: kept})).To(BeTrue(), "its Node is known now")

	// Metal3 sets the provider ID before Cluster API finds the Node.
	provided, found := trimMachine(whole), kept.DeepCopy()
	provided.Spec.ProviderID, provided.Spec.InfrastructureRef.Kind = "metal3://m", metal3.MachineKind
	found.Spec.ProviderID, found.Spec.InfrastructureRef = provided.Spec.ProviderID, provided.Spec.InfrastructureRef
	g.Expect(facts.WaitsForNode(provided)).To(BeFalse())
	g.Expect(MachineChanges.Update(event.UpdateEvent{ObjectOld: provided, ObjectNew: found})).To(BeTrue(), "its kubelet is known now")
}

func TestPlannedWorkersKeepFieldsThatAreRead(t *testing.T) {
	g := NewWithT(t)
	template := func(spec *clusterv1.MachineTemplateSpec) {
		spec.Spec.Bootstrap.ConfigRef.Kind, spec.Spec.Version = "OpenshiftAssistedConfigTemplate", "v4.19.3"
	}
	deployment := &clusterv1.MachineDeployment{
		ObjectMeta: identity(), Spec: clusterv1.MachineDeploymentSpec{ClusterName: "cluster1", Replicas: ptr.To[int32](2)},
	}
	deployment.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "w"}
	deployment.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	template(&deployment.Spec.Template)
	planned := burdened(deployment)
	planned.Spec.Template.Labels, planned.Status.Phase = map[string]string{"l": "v"}, "Running"
	g.Expect(trimMachineDeployment(planned)).To(Equal(deployment))

	set := &clusterv1.MachineSet{ObjectMeta: identity(), Spec: clusterv1.MachineSetSpec{ClusterName: "cluster1", Replicas: ptr.To[int32](2)}}
	set.Labels, set.OwnerReferences = nil, []metav1.OwnerReference{{Kind: "MachineDeployment", UID: "2"}}
	template(&set.Spec.Template)
	made := burdened(set)
	made.Spec.Template.Labels, made.Status.Conditions = map[string]string{"l": "v"}, []metav1.Condition{machineCondition("Other")}
	g.Expect(trimMachineSet(made)).To(Equal(set))

	blocked := machineCondition(clusterv1.ScalingUpCondition)
	blocked.Status, blocked.Message = metav1.ConditionTrue, "Scaling up from 0 to 2 replicas is blocked because:\n* preflight"
	stuck := made.DeepCopy()
	stuck.Status.Conditions = append(stuck.Status.Conditions, blocked)
	g.Expect(workers.Blocker(trimMachineSet(stuck))).To(Equal("because: * preflight"))
	g.Expect(OwnerChanges[*clusterv1.MachineSet]().Update(event.UpdateEvent{
		ObjectOld: trimMachineSet(made), ObjectNew: trimMachineSet(stuck),
	})).To(BeTrue())
	held := planned.DeepCopy()
	held.Spec.Paused = ptr.To(true)
	g.Expect(trimMachineDeployment(held).Spec.Paused).To(Equal(held.Spec.Paused))
}

func TestRequestedCapacityKeepsFieldsThatAreReadOrApplied(t *testing.T) {
	g := NewWithT(t)
	kept := &clusterv1.MachineDeployment{ObjectMeta: identity()}
	kept.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: "w", clusterv1.WatchLabel: "mine"}
	kept.Annotations = map[string]string{
		controlplanev1.AutoscalingCapacityAnnotation: "x", clusterv1.PausedAnnotation: "",
		capacity.CPUAnnotation: "7500m", capacity.MemoryAnnotation: "1Gi", controlplanev1.StatedCapacityAnnotation: "{}",
	}
	kept.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "Metal3MachineTemplate", Name: "w"}
	g.Expect(trimMachineDeployment(burdened(kept))).To(Equal(kept))
	kept.ManagedFields = []metav1.ManagedFieldsEntry{applied}
	g.Expect(trimMachineDeployment(burdened(kept))).To(Equal(kept))
	delete(kept.Annotations, controlplanev1.AutoscalingCapacityAnnotation)
	g.Expect(trimMachineDeployment(burdened(kept))).To(Equal(kept), "annotations are left to withdraw")

	kept.ManagedFields = nil
	g.Expect(trimMachineDeployment(burdened(kept))).To(Equal(kept), "moved or restored")

	delete(kept.Annotations, controlplanev1.StatedCapacityAnnotation)
	ignored := trimMachineDeployment(burdened(kept))
	g.Expect(ignored.Annotations).To(BeEmpty(), "the annotations are the user's")
	g.Expect(ignored.Spec.Template.Spec.InfrastructureRef.Kind).To(BeEmpty())
}

func TestHostKeepsSizeAndWhatSelectsIt(t *testing.T) {
	g := NewWithT(t)
	size := &metal3.Hardware{CPU: metal3.CPU{Count: 8}, RAMMebibytes: 1024}
	kept := &metal3.Host{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "h", Labels: map[string]string{"pool": "gpu"}}}
	kept.Annotations = map[string]string{"capm3.metal3.io/unhealthy": ""}
	kept.Spec.ExternallyProvisioned, kept.Status.Provisioning.State, kept.Status.HardwareDetails = true, "available", size
	whole := kept.DeepCopy()
	whole.Annotations["other"], whole.Finalizers = "x", []string{"f"}
	whole.Spec.BMC.Address, whole.Status.ErrorMessage = "redfish://bmc", "large"
	whole.Status.HardwareDetails.NIC, whole.Status.HardwareDetails.Storage = []metal3.NIC{{MAC: "m"}}, []metal3.Disk{{SizeBytes: 1}}
	g.Expect(TrimInfra(whole)).To(Equal(kept))
	g.Expect(TrimInfra(&metal3.Host{})).To(Equal(&metal3.Host{}))

	data := &metal3.HardwareData{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: "h"}, Spec: metal3.HardwareDataSpec{Hardware: size}}
	inspected := data.DeepCopy()
	inspected.Labels, inspected.Spec.Hardware.NIC = map[string]string{"l": "v"}, []metal3.NIC{{MAC: "m"}}
	g.Expect(TrimInfra(inspected)).To(Equal(data))
}

func TestConfigKeepsFieldsThatAreApplied(t *testing.T) {
	kept := &bootstrapv1.OpenshiftAssistedConfig{
		ObjectMeta: identity(), Spec: bootstrapv1.OpenshiftAssistedConfigSpec{CPUArchitecture: "arm64"},
	}
	kept.Annotations, kept.OwnerReferences = map[string]string{"a": "b"}, []metav1.OwnerReference{{Kind: "Machine", UID: "2"}}
	kept.ManagedFields = []metav1.ManagedFieldsEntry{applied}
	kept.Status.AgentRef = &corev1.LocalObjectReference{Name: "agent"}
	whole := kept.DeepCopy()
	whole.Finalizers, whole.ManagedFields = []string{"f"}, []metav1.ManagedFieldsEntry{others, applied}
	whole.Status.Conditions = []metav1.Condition{machineCondition("Ready")}
	NewWithT(t).Expect(trimConfig(whole)).To(Equal(kept))
}

// infraMachine returns an infra machine with only the fields that are read.
func infraMachine() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"providerID": "p"}}}
	u.SetGroupVersionKind(infraGV.WithKind("Metal3Machine"))
	u.SetNamespace(lab)
	u.SetName("m")
	u.SetUID("1")
	u.SetResourceVersion("5")
	u.SetDeletionTimestamp(ptr.To(metav1.Now().Rfc3339Copy()))
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Machine", Name: "m", UID: "2"}})
	u.SetLabels(identity().Labels)
	return u
}

func TestInfraMachineKeepsFieldsThatAreReadOrApplied(t *testing.T) {
	g := NewWithT(t)
	kept := infraMachine()
	kept.SetAnnotations(map[string]string{
		"metal3.io/BareMetalHost": "lab/host", machines.KubeconfigPublishedAnnotation: "k", machines.NodeSeenAnnotation: "n",
	})
	whole := burdened(kept)
	whole.SetManagedFields([]metav1.ManagedFieldsEntry{others, applied})
	g.Expect(unstructured.SetNestedField(whole.Object, "url", "spec", "image", "url")).To(Succeed())
	g.Expect(unstructured.SetNestedField(whole.Object, true, "status", "ready")).To(Succeed())
	g.Expect(TrimInfra(whole.DeepCopy())).To(Equal(kept))

	annotations := whole.GetAnnotations()
	annotations["controlplane.cluster.x-k8s.io/propagated-metadata"] = "true"
	whole.SetAnnotations(annotations)
	kept.SetLabels(whole.GetLabels())
	kept.SetAnnotations(annotations)
	kept.SetManagedFields([]metav1.ManagedFieldsEntry{applied})
	g.Expect(TrimInfra(whole)).To(Equal(kept), "the machineTemplate may contain any metadata")
}

func TestInfraTemplateKeepsFieldsThatAreRead(t *testing.T) {
	kept := infraTemplate()
	kept.SetUID("1")
	kept.SetResourceVersion("5")
	kept.SetGeneration(2)
	kept.SetDeletionTimestamp(ptr.To(metav1.Now().Rfc3339Copy()))
	kept.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Cluster", Name: "cluster1", UID: "2"}})
	whole := burdened(kept)
	whole.Object["status"] = map[string]any{"capacity": "large"}
	NewWithT(t).Expect(TrimInfra(whole)).To(Equal(kept))
}

func TestRebootKeepsFieldsThatAreRead(t *testing.T) {
	kept := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": "Running"}}}
	kept.SetGroupVersionKind(infraGV.WithKind("Metal3Remediation"))
	kept.SetNamespace(lab)
	kept.SetName("m")
	kept.SetUID("1")
	kept.SetResourceVersion("5")
	kept.SetDeletionTimestamp(ptr.To(metav1.Now().Rfc3339Copy()))
	kept.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Machine", Name: "m", UID: "2"}})
	whole := burdened(kept)
	whole.Object["spec"] = map[string]any{"strategy": "large"}
	NewWithT(t).Expect(TrimInfra(whole)).To(Equal(kept))
}

// Cluster API counts a Machine without the label as a worker: the control plane has one Machine less.
func TestMachineThatLeavesTheControlPlaneIsAChange(t *testing.T) {
	g := NewWithT(t)
	master := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}}
	worker := &clusterv1.Machine{}
	g.Expect(MachineChanges.Update(event.UpdateEvent{ObjectOld: master, ObjectNew: worker})).To(BeTrue())
	g.Expect(MachineChanges.Update(event.UpdateEvent{ObjectOld: worker, ObjectNew: master})).To(BeTrue())
	g.Expect(MachineChanges.Update(event.UpdateEvent{ObjectOld: worker, ObjectNew: worker})).To(BeFalse())
}
