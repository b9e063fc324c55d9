package config

import (
	"slices"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// trimHost keeps what a host is recognised by, whose it is, and where and from what it was told to boot. Any host may become ours.
func trimHost(host *metal3api.BareMetalHost) *metal3api.BareMetalHost {
	kept := &metal3api.BareMetalHost{ObjectMeta: kube.Identity(&host.ObjectMeta)}
	kept.Spec.BMC.Address, kept.Spec.BootMACAddress, kept.Spec.RootDeviceHints = host.Spec.BMC.Address, host.Spec.BootMACAddress, host.Spec.RootDeviceHints
	if ref := host.Spec.ConsumerRef; ref != nil {
		kept.Spec.ConsumerRef = &corev1.ObjectReference{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	}
	if image := host.Spec.Image; image != nil {
		kept.Spec.Image = &metal3api.Image{URL: image.URL}
	}
	if found := host.Status.HardwareDetails; found != nil {
		kept.Status.HardwareDetails = &metal3api.HardwareDetails{}
		kept.Status.HardwareDetails.SystemVendor.SerialNumber = found.SystemVendor.SerialNumber
		for i := range found.NIC { // one that has several addresses is there several times
			nic := metal3api.NIC{MAC: found.NIC[i].MAC}
			if !slices.ContainsFunc(kept.Status.HardwareDetails.NIC, func(k metal3api.NIC) bool { return k.MAC == nic.MAC }) {
				kept.Status.HardwareDetails.NIC = append(kept.Status.HardwareDetails.NIC, nic)
			}
		}
	}
	return kept
}

// readConditions are the conditions of Agents that are read.
var readConditions = []conditionsv1.ConditionType{
	aiv1beta1.SpecSyncedCondition, aiv1beta1.BoundCondition, aiv1beta1.ConnectedCondition, aiv1beta1.ValidatedCondition, aiv1beta1.InstalledCondition,
	aiv1beta1.CleanupCondition,
}

// trimAgent keeps of an Agent that waits for its cluster what is decided upon and what we tell it. An Agent that is bound and approved is told nothing more, and of
// its hardware only what it is recognised by is looked at.
func trimAgent(agent *aiv1beta1.Agent) *aiv1beta1.Agent {
	kept := &aiv1beta1.Agent{ObjectMeta: kube.Identity(&agent.ObjectMeta), Spec: agent.Spec}
	kept.Labels = kube.Only(agent.Labels, aiv1beta1.InfraEnvNameLabel)
	kept.Annotations = kube.Only(agent.Annotations, skipSpokeCleanupAnnotation)
	status, found := &kept.Status, &agent.Status
	status.Role, status.InstallationDiskID = found.Role, found.InstallationDiskID
	status.Progress.CurrentStage = found.Progress.CurrentStage
	status.DebugInfo.State, status.DebugInfo.StateInfo = found.DebugInfo.State, found.DebugInfo.StateInfo
	status.Conditions = trimConditions(found.Conditions)
	inventory := &status.Inventory
	for i := range found.Inventory.Interfaces {
		inventory.Interfaces = append(inventory.Interfaces, aiv1beta1.HostInterface{MacAddress: found.Inventory.Interfaces[i].MacAddress})
	}
	inventory.SystemVendor.SerialNumber = found.Inventory.SystemVendor.SerialNumber
	if facts.Bound(agent) && agent.Spec.Approved {
		kept.Spec = aiv1beta1.AgentSpec{ClusterDeploymentName: agent.Spec.ClusterDeploymentName, Role: agent.Spec.Role, Approved: true}
		if facts.Told(agent) {
			kept.Spec.IgnitionConfigOverrides = "{}" // that there is one tells that it was told
		}
		return kept
	}
	kept.ManagedFields = apply.Own(FieldManager, agent.ManagedFields)
	inventory.Hostname, inventory.Memory, inventory.Disks = found.Inventory.Hostname, found.Inventory.Memory, found.Inventory.Disks
	inventory.Cpu.Count = found.Inventory.Cpu.Count
	return kept
}

// trimConditions keeps of a condition that is true no more than since when it is.
func trimConditions(conditions []conditionsv1.Condition) []conditionsv1.Condition {
	kept := make([]conditionsv1.Condition, 0, len(readConditions))
	for _, c := range conditions {
		if !slices.Contains(readConditions, c.Type) {
			continue
		}
		left := conditionsv1.Condition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}
		if c.Status != corev1.ConditionTrue {
			left.Reason, left.Message = c.Reason, c.Message
		}
		kept = append(kept, left)
	}
	return kept
}

// readFields are the fields of infrastructure machines that are read or, the boot image, stated.
var readFields = [][]string{
	{"apiVersion"},
	{"kind"},
	{"metadata", "namespace"},
	{"metadata", "name"},
	{"metadata", "uid"},
	{"metadata", "resourceVersion"},
	{"metadata", "generation"},
	{"metadata", "creationTimestamp"},
	{"metadata", "deletionTimestamp"},
	{"metadata", "annotations", metal3.HostAnnotation},
	{"spec", "providerID"},
	{"spec", "image", "url"},
	{"spec", "image", "format"},
	{"spec", "image", "diskFormat"},
	{"status", "ready"},
	{"status", "initialization", "provisioned"},
	{"status", "metaData", "name"},
}

// TrimInfraMachine is the cache transform of kinds that have none of their own: of infrastructure machines, which are all that is read without a type, it keeps what
// is read. Once its host is chosen nothing is told to one, and the record of what it was told not needed.
func TrimInfraMachine(in any) (any, error) {
	machine, ok := in.(*unstructured.Unstructured)
	if !ok {
		return apply.KeepOwn(FieldManager)(in)
	}
	kept := kube.Fields(machine, readFields)
	if chosen := machine.GetAnnotations()[metal3.HostAnnotation] != ""; !chosen {
		kept.SetManagedFields(apply.Own(FieldManager, machine.GetManagedFields()))
	}
	return kept, nil
}
