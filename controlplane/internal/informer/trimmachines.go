package informer

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/capacity"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/machines"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// trimControlPlane drops the records of applied fields, which belong to users. All other fields are read, or compared with
// the object to write.
func trimControlPlane(cp *controlplanev1.OpenshiftAssistedControlPlane) *controlplanev1.OpenshiftAssistedControlPlane {
	kept := *cp
	kept.ManagedFields = nil
	delete(kept.Annotations, corev1.LastAppliedConfigAnnotation)
	kept.OwnerReferences, kept.Status.Conditions = kube.InternOwners(cp.OwnerReferences), kube.InternConditions(cp.Status.Conditions)
	return &kept
}

// clusterAnnotations are the annotations of a Cluster that are read.
var clusterAnnotations = []string{clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation, clusterv1.ClusterTopologyUpgradeStepAnnotation}

func trimCluster(cluster *clusterv1.Cluster) *clusterv1.Cluster {
	kept := &clusterv1.Cluster{ObjectMeta: kube.Identity(&cluster.ObjectMeta)}
	spec := &cluster.Spec
	kept.Spec.Paused, kept.Spec.ControlPlaneRef, kept.Spec.ControlPlaneEndpoint = spec.Paused, spec.ControlPlaneRef, spec.ControlPlaneEndpoint
	kept.Spec.ClusterNetwork.Pods, kept.Spec.ClusterNetwork.Services = spec.ClusterNetwork.Pods, spec.ClusterNetwork.Services
	kept.Annotations = kube.SelectKeys(cluster.Annotations, clusterAnnotations...)
	kept.Spec.Topology.Version = spec.Topology.Version
	planned := &kept.Spec.Topology.Workers
	for i := range spec.Topology.Workers.MachineDeployments {
		d := &spec.Topology.Workers.MachineDeployments[i]
		planned.MachineDeployments = append(planned.MachineDeployments, clusterv1.MachineDeploymentTopology{Name: d.Name, Replicas: d.Replicas})
	}
	kept.Status.Initialization, kept.Status.FailureDomains = cluster.Status.Initialization, cluster.Status.FailureDomains
	if plan := workersPlan(cluster); len(plan) > 0 {
		kept.Status.Workers = &clusterv1.WorkersStatus{UpgradePlan: plan}
	}
	return kept
}

// workersPlan returns the versions that Cluster API 1.14 and newer plans for the workers of a topology.
func workersPlan(cluster *clusterv1.Cluster) []clusterv1.StatusUpgradePlanVersion {
	if cluster.Status.Workers == nil {
		return nil
	}
	return cluster.Status.Workers.UpgradePlan
}

// trimMachine keeps the applied fields of a control-plane Machine, and the host and the blockers of a worker.
func trimMachine(machine *clusterv1.Machine) *clusterv1.Machine {
	kept := &clusterv1.Machine{ObjectMeta: kube.Identity(&machine.ObjectMeta)}
	kept.OwnerReferences = kube.InternOwners(machine.OwnerReferences)
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	if !controlPlane && !workers.OwnedByKind(machine, facts.ControlPlaneKind) {
		kept.Spec.ClusterName, kept.Spec.ProviderID, kept.Spec.Version = machine.Spec.ClusterName, machine.Spec.ProviderID, machine.Spec.Version
		kept.Spec.Bootstrap.ConfigRef.Kind, kept.Spec.InfrastructureRef = machine.Spec.Bootstrap.ConfigRef.Kind, machine.Spec.InfrastructureRef
		kept.Status.NodeRef = machine.Status.NodeRef
		if !machine.Status.NodeRef.IsDefined() {
			kept.Spec.Bootstrap.ConfigRef.Name = machine.Spec.Bootstrap.ConfigRef.Name
		}
		if facts.WaitsForNode(machine) {
			kept.Spec.Bootstrap.DataSecretName = machine.Spec.Bootstrap.DataSecretName
		}
		kept.Status.Conditions = trimConditions(machine.Status.Conditions, clusterv1.MachineBootstrapConfigReadyCondition)
		kept.Status.Conditions = append(kept.Status.Conditions, nodeAway(machine)...)
		// A Machine that was removed from its control plane may have the hook.
		kept.Annotations = kube.SelectKeys(machine.Annotations, controlplanev1.EtcdMemberHookAnnotation, clusterv1.UpdateInProgressAnnotation)
		return kept
	}
	kept.Labels, kept.Annotations = machine.Labels, machine.Annotations
	kept.Spec, kept.ManagedFields = machine.Spec, apply.Own(writer.FieldOwner, machine.ManagedFields)
	kept.Status.NodeRef = machine.Status.NodeRef
	kept.Status.Conditions = trimConditions(machine.Status.Conditions, clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition,
		clusterv1.MachineUpToDateCondition, clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		clusterv1.MachineBootstrapConfigReadyCondition, controlplanev1.EtcdMemberHealthyCondition)
	if machine.DeletionTimestamp.IsZero() {
		kept.Status.Conditions = append(kept.Status.Conditions, nodeAway(machine)...)
	} else {
		read := trimConditions(machine.Status.Conditions, clusterv1.MachineDeletingCondition, clusterv1.MachineNodeReadyCondition)
		kept.Status.Conditions = append(kept.Status.Conditions, read...)
	}
	return kept
}

// nodeAway returns the condition of a Machine whose Node is not Ready. Most Machines have a ready Node and cost nothing.
func nodeAway(machine *clusterv1.Machine) []metav1.Condition {
	if !facts.NodeAway(machine) {
		return nil
	}
	c := conditions.Get(machine, clusterv1.MachineNodeReadyCondition)
	// The reason separates a kubelet that does not report from a cluster that Cluster API does not reach.
	return []metav1.Condition{{Type: c.Type, Status: kube.Intern(c.Status), Reason: kube.Intern(c.Reason)}}
}

// trimConditions keeps the conditions that are read, with their times: Cluster API summarizes conditions of several Machines
// in the order of the times.
func trimConditions(conditions []metav1.Condition, read ...string) []metav1.Condition {
	var kept []metav1.Condition
	for _, c := range conditions {
		if slices.Contains(read, c.Type) {
			kept = append(kept, metav1.Condition{
				Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return kube.InternConditions(kept)
}

func trimMachineDeployment(deployment *clusterv1.MachineDeployment) *clusterv1.MachineDeployment {
	kept := &clusterv1.MachineDeployment{ObjectMeta: kube.Identity(&deployment.ObjectMeta)}
	kept.Labels = kube.SelectKeys(deployment.Labels, clusterv1.ClusterTopologyMachineDeploymentNameLabel)
	kept.Spec.ClusterName, kept.Spec.Replicas = deployment.Spec.ClusterName, deployment.Spec.Replicas
	template := &deployment.Spec.Template.Spec
	kept.Spec.Template.Spec.Bootstrap.ConfigRef.Kind, kept.Spec.Template.Spec.Version = template.Bootstrap.ConfigRef.Kind, template.Version
	kept.Spec.Rollout.Strategy.Type, kept.Spec.Paused = deployment.Spec.Rollout.Strategy.Type, deployment.Spec.Paused
	kept.Status.Conditions = blockers(deployment, deployment.Status.Conditions)
	keepCapacity(kept, deployment)
	return kept
}

// keepCapacity adds the fields that determine the capacity for the cluster autoscaler, if the MachineDeployment
// requests or states it.
func keepCapacity(kept, deployment *clusterv1.MachineDeployment) {
	kept.ManagedFields = apply.Own(writer.FieldOwner, deployment.ManagedFields)
	if !statesCapacity(deployment.Annotations, kept.ManagedFields) {
		return
	}
	read := []string{controlplanev1.AutoscalingCapacityAnnotation, controlplanev1.StatedCapacityAnnotation, clusterv1.PausedAnnotation}
	kept.Annotations = kube.SelectKeys(deployment.Annotations, append(read, capacity.Annotations...)...)
	kept.Labels = kube.SelectKeys(deployment.Labels, clusterv1.ClusterTopologyMachineDeploymentNameLabel, clusterv1.WatchLabel)
	kept.Spec.Template.Spec.InfrastructureRef = deployment.Spec.Template.Spec.InfrastructureRef
}

// trimHost keeps the fields of a BareMetalHost that decide whether a MachineDeployment may get it, and its size. See
// package capacity. BareMetalHosts are cached only if a MachineDeployment requests its capacity.
func trimHost(host *metal3.Host) *metal3.Host {
	kept := &metal3.Host{ObjectMeta: kube.Identity(&host.ObjectMeta)}
	kept.Labels, kept.Annotations = host.Labels, kube.SelectKeys(host.Annotations, metal3.BlockingAnnotations...)
	kept.Spec.ExternallyProvisioned = host.Spec.ExternallyProvisioned
	kept.Status.Provisioning.State = kube.Intern(host.Status.Provisioning.State)
	kept.Status.HardwareDetails = trimHardware(host.Status.HardwareDetails)
	return kept
}

func trimHardwareData(data *metal3.HardwareData) *metal3.HardwareData {
	kept := &metal3.HardwareData{ObjectMeta: kube.Identity(&data.ObjectMeta)}
	kept.Spec.Hardware = trimHardware(data.Spec.Hardware)
	return kept
}

// trimHardware keeps the size.
func trimHardware(hardware *metal3.Hardware) *metal3.Hardware {
	if hardware == nil {
		return nil
	}
	return &metal3.Hardware{CPU: hardware.CPU, RAMMebibytes: hardware.RAMMebibytes}
}

func trimMachineSet(set *clusterv1.MachineSet) *clusterv1.MachineSet {
	kept := &clusterv1.MachineSet{ObjectMeta: kube.Identity(&set.ObjectMeta)}
	kept.OwnerReferences = kube.InternOwners(set.OwnerReferences)
	kept.Spec.ClusterName, kept.Spec.Replicas = set.Spec.ClusterName, set.Spec.Replicas
	template := &set.Spec.Template.Spec
	kept.Spec.Template.Spec.Bootstrap.ConfigRef.Kind, kept.Spec.Template.Spec.Version = template.Bootstrap.ConfigRef.Kind, template.Version
	kept.Status.Conditions = blockers(set, set.Status.Conditions)
	return kept
}

// blockers returns the conditions that report why Machines are not created; nil without a blocker.
func blockers(obj conditions.Getter, all []metav1.Condition) []metav1.Condition {
	if workers.Blocker(obj) == "" {
		return nil
	}
	return trimConditions(all, clusterv1.PausedCondition, clusterv1.ScalingUpCondition)
}

// trimConfig drops the status but the Agent that was proven to run on the host. Machines mirror the other read fields.
func trimConfig(config *bootstrapv1.OpenshiftAssistedConfig) *bootstrapv1.OpenshiftAssistedConfig {
	kept := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: kube.Identity(&config.ObjectMeta), Spec: config.Spec}
	kept.Labels, kept.Annotations, kept.OwnerReferences = config.Labels, config.Annotations, kube.InternOwners(config.OwnerReferences)
	kept.ManagedFields = apply.Own(writer.FieldOwner, config.ManagedFields)
	kept.Status.AgentRef = config.Status.AgentRef
	return kept
}

// The fields of infrastructure machines, of their reboots and of their templates that are read.
var (
	infraFields = [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata", "namespace"},
		{"metadata", "name"},
		{"metadata", "uid"},
		{"metadata", "resourceVersion"},
		{"metadata", "deletionTimestamp"},
		{"metadata", "ownerReferences"},
	}
	machineFields  = append(slices.Clone(infraFields), []string{"spec", "providerID"})
	rebootFields   = append(slices.Clone(infraFields), []string{"status", "phase"})
	templateFields = append(slices.Clone(infraFields), []string{"metadata", "generation"}, []string{"spec", "template"})
)

// TrimInfra is the cache transform of the kinds that a hub may lack. Those that are read without a Go type are
// infrastructure machines, their reboots and their templates. A hub without the Bare Metal Operator has no BareMetalHosts
// and no HardwareData: a manager with cache options for them would not start.
func TrimInfra(in any) (any, error) {
	switch typed := in.(type) {
	case *metal3.Host:
		return trimHost(typed), nil
	case *metal3.HardwareData:
		return trimHardwareData(typed), nil
	}
	infra, ok := in.(*unstructured.Unstructured)
	switch {
	case !ok:
		return apply.KeepOwn(writer.FieldOwner)(in)
	case strings.HasSuffix(infra.GetKind(), clusterv1.TemplateSuffix):
		return kube.SelectFields(infra, templateFields), nil
	case infra.GetKind() == metal3.RebootKind:
		return kube.SelectFields(infra, rebootFields), nil
	}
	kept := kube.SelectFields(infra, machineFields)
	if labels, annotations := infra.GetLabels(), infra.GetAnnotations(); desired.Propagated(infra) {
		kept.SetLabels(labels)
		kept.SetAnnotations(annotations)
		kept.SetManagedFields(apply.Own(writer.FieldOwner, infra.GetManagedFields()))
	} else {
		kept.SetLabels(kube.SelectKeys(labels, ownLabels...))
		kept.SetAnnotations(kube.SelectKeys(annotations, metal3.HostAnnotation, machines.KubeconfigPublishedAnnotation,
			machines.NodeSeenAnnotation, controlplanev1.DeleteProtectionAnnotation))
	}
	return kept, nil
}
