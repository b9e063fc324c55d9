package informer

import (
	"slices"

	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// trimHost keeps the fields that identify a host, its owner, the image and the source of its boot, and its
// problems. Of a free host, it keeps the fields that decide whether the host fits a Machine. If a host is another
// consumer's, or provisioned without a consumer, it keeps only that the host is not available. It keeps the
// identifying fields of every host: a value that a second host has, too, identifies neither host.
func trimHost(host *metal3.Host) *metal3.Host {
	kept := &metal3.Host{ObjectMeta: kube.Identity(&host.ObjectMeta)}
	kept.Spec.BootMACAddress, kept.Spec.BMC.Address, kept.Spec.ExternallyProvisioned = host.Spec.BootMACAddress, host.Spec.BMC.Address,
		host.Spec.ExternallyProvisioned
	if found := host.Status.HardwareDetails; found != nil {
		kept.Status.HardwareDetails = &metal3.Hardware{SystemVendor: found.SystemVendor, NIC: trimNICs(found.NIC)}
	}
	consumer := metal3.ConsumerOf(host)
	switch {
	case consumer.Name != "":
		trimOwned(kept, host, consumer)
	case host.Spec.ConsumerRef != nil:
		kept.Spec.ConsumerRef = &metal3.Consumer{Kind: kube.Intern(host.Spec.ConsumerRef.Kind)}
	default:
		trimFree(kept, host)
	}
	return kept
}

// trimOwned adds the fields that are read of the host of a Metal3Machine.
func trimOwned(kept, host *metal3.Host, consumer types.NamespacedName) {
	if consumer.Namespace == host.Namespace {
		consumer.Namespace = host.Namespace // shares one string in memory
	}
	kept.Spec = host.Spec
	kept.Spec.ConsumerRef = &metal3.Consumer{Kind: metal3.MachineKind, Namespace: consumer.Namespace, Name: consumer.Name}
	kept.Annotations = metal3.Settings(host.Annotations)
	for key, value := range kube.SelectKeys(host.Annotations, metal3.BlockingAnnotations...) {
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
	}
	kept.Status.ErrorType, kept.Status.ErrorMessage = kube.Intern(host.Status.ErrorType), host.Status.ErrorMessage
	// The kept host has no start of the registration, so that the label alone has the same result.
	if metal3.RestoredWithoutHistory(host) {
		kept.Labels = kube.SelectKeys(host.Labels, metal3.RestoreLabel)
	}
	kept.Status.Provisioning.State, kept.Status.PoweredOn = kube.Intern(host.Status.Provisioning.State), host.Status.PoweredOn
	kept.Status.Conditions = metal3.Unhealthy(host)
	kept.Status.History.Provision.End = host.Status.History.Provision.End
}

// trimFree adds the fields that are read of a host without consumer, by which CAPM3 chooses. On a hub that also
// installs in other ways, most of these hosts are provisioned.
func trimFree(kept, host *metal3.Host) {
	kept.Status.Provisioning.State = kube.Intern(host.Status.Provisioning.State)
	kept.Annotations = kube.SelectKeys(host.Annotations, metal3.BlockingAnnotations...)
	kept.Status.ErrorType, kept.Status.ErrorMessage = kube.Intern(host.Status.ErrorType), host.Status.ErrorMessage
	kept.Labels = kube.SelectKeys(host.Labels, metal3.NodeReuseLabel)
	keptFor := kept.Labels[metal3.NodeReuseLabel] // the owner of the reservation may get the host
	if metal3.MayBeChosen(kept, keptFor) {
		kept.Labels = host.Labels
	}
	if metal3.UnavailableReason(kept, keptFor) != "" {
		return
	}
	kept.Labels, kept.Spec.BMC = host.Labels, host.Spec.BMC
	kept.Status.Conditions = metal3.Unhealthy(host)
	for key, value := range kube.SelectKeys(host.Annotations, metal3.FencingCredentialsAnnotation, metal3.HostnameAnnotation) {
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, value)
	}
	if found := host.Status.HardwareDetails; found != nil {
		details := kept.Status.HardwareDetails
		details.CPU, details.RAMMebibytes, details.Storage = found.CPU, found.RAMMebibytes,
			[]metal3.Disk{{SizeBytes: metal3.LargestDisk(found.Storage)}}
	}
}

// trimNICs keeps each address once.
func trimNICs(found []metal3.NIC) []metal3.NIC {
	nics := make([]metal3.NIC, 0, len(found))
	for _, nic := range found {
		if !slices.Contains(nics, nic) {
			nics = append(nics, nic)
		}
	}
	return slices.Clone(nics)
}

// readConditions are the conditions that are read of Agents.
var readConditions = []conditionsv1.ConditionType{
	aiv1beta1.SpecSyncedCondition, aiv1beta1.BoundCondition, aiv1beta1.ConnectedCondition, aiv1beta1.ValidatedCondition,
	aiv1beta1.InstalledCondition,
	aiv1beta1.CleanupCondition,
}

// readOnceApproved are the conditions that are read of a bound and approved Agent. Of an installed Agent, only the
// condition of its deletion is read.
var readOnceApproved = []conditionsv1.ConditionType{
	aiv1beta1.ConnectedCondition, aiv1beta1.ValidatedCondition, aiv1beta1.InstalledCondition, aiv1beta1.CleanupCondition,
}

// TrimAgent keeps, of an Agent that waits for its cluster, the fields that decide and the fields that we apply.
// Nothing more is applied to an Agent that is bound and approved. Of its hardware, only the identifying fields are
// read.
func TrimAgent(agent *aiv1beta1.Agent) *aiv1beta1.Agent {
	kept := &aiv1beta1.Agent{ObjectMeta: kube.Identity(&agent.ObjectMeta)}
	kept.Labels = kube.SelectKeys(agent.Labels, aiv1beta1.InfraEnvNameLabel)
	kept.Annotations = kube.SelectKeys(agent.Annotations, assisted.SkipSpokeCleanupAnnotation, desired.FencingAnnotation)
	status, found := &kept.Status, &agent.Status
	status.Progress.CurrentStage, status.DebugInfo.State = kube.Intern(found.Progress.CurrentStage), kube.Intern(found.DebugInfo.State)
	status.Progress.StageStartTime, status.Progress.InstallationPercentage = found.Progress.StageStartTime,
		found.Progress.InstallationPercentage
	status.Inventory.SystemVendor.SerialNumber = found.Inventory.SystemVendor.SerialNumber
	status.Inventory.Interfaces = trimInterfaces(found.Inventory.Interfaces)
	if facts.Bound(agent) && agent.Spec.Approved {
		return trimApproved(kept, agent)
	}
	kept.Spec, kept.ManagedFields = agent.Spec, apply.Own(writer.FieldOwner, agent.ManagedFields)
	for key, value := range agent.Labels { // possibly applied by us
		if !aiv1beta1.IsServiceLabel(key) {
			metav1.SetMetaDataLabel(&kept.ObjectMeta, key, value)
		}
	}
	status.Role, status.InstallationDiskID = found.Role, found.InstallationDiskID
	status.DebugInfo.StateInfo = found.DebugInfo.StateInfo
	status.Conditions = trimConditions(found.Conditions, readConditions)
	inventory := &status.Inventory
	inventory.Hostname, inventory.Memory, inventory.Disks = found.Inventory.Hostname, found.Inventory.Memory, found.Inventory.Disks
	inventory.Cpu.Count, inventory.Gpus = found.Inventory.Cpu.Count, found.Inventory.Gpus
	return kept
}

// trimApproved adds the fields that are read of a bound and approved Agent to the fields that are read of any
// Agent.
func trimApproved(kept, agent *aiv1beta1.Agent) *aiv1beta1.Agent {
	cluster := *agent.Spec.ClusterDeploymentName
	if cluster.Namespace == agent.Namespace {
		cluster.Namespace = agent.Namespace // shares one string in memory
	}
	kept.Spec = aiv1beta1.AgentSpec{
		ClusterDeploymentName: &cluster, Role: kube.Intern(agent.Spec.Role), Approved: true,
		FencingCredentialsSecretRef: agent.Spec.FencingCredentialsSecretRef,
	}
	if facts.BoundByUs(agent) {
		kept.Spec.IgnitionConfigOverrides = "{}" // the presence of the overrides shows that we bound the Agent
	}
	if facts.Installed(agent) {
		kept.Status.Conditions = trimConditions(agent.Status.Conditions, []conditionsv1.ConditionType{aiv1beta1.CleanupCondition})
		return kept
	}
	kept.Status.DebugInfo.StateInfo = agent.Status.DebugInfo.StateInfo
	kept.Status.Conditions = trimConditions(agent.Status.Conditions, readOnceApproved)
	return kept
}

// trimInterfaces keeps the MAC addresses.
func trimInterfaces(interfaces []aiv1beta1.HostInterface) []aiv1beta1.HostInterface {
	if len(interfaces) == 0 {
		return nil
	}
	kept := make([]aiv1beta1.HostInterface, len(interfaces))
	for i := range interfaces {
		kept[i].MacAddress = interfaces[i].MacAddress
	}
	return kept
}

// trimConditions keeps the conditions of the types in read, without reason and message where the condition is
// True.
func trimConditions(conditions []conditionsv1.Condition, read []conditionsv1.ConditionType) []conditionsv1.Condition {
	kept := make([]conditionsv1.Condition, 0, len(read))
	for _, c := range conditions {
		if !slices.Contains(read, c.Type) {
			continue
		}
		left := conditionsv1.Condition{Type: kube.Intern(c.Type), Status: kube.Intern(c.Status), LastTransitionTime: c.LastTransitionTime}
		if c.Status != corev1.ConditionTrue {
			left.Reason, left.Message = c.Reason, c.Message
		}
		kept = append(kept, left)
	}
	if len(kept) == 0 {
		return nil
	}
	return slices.Clone(kept) // without unused capacity
}

// readFields are the fields of infrastructure machines that are read, and the boot image, which is applied.
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
	{"metadata", "ownerReferences"},
	{"metadata", "annotations", metal3.HostAnnotation},
	{"spec", "providerID"},
	{"spec", "image", "url"},
	{"spec", "image", "format"},
	{"spec", "image", "diskFormat"},
	{"status", "ready"},
	{"status", "initialization", "provisioned"},
	{"status", "metaData", "name"},
}

// readBeforehand are the fields that are read until the host is chosen.
var readBeforehand = append(
	slices.Clone(readFields),
	[]string{"metadata", "labels", clusterv1.MachineControlPlaneLabel},
	[]string{"metadata", "labels", clusterv1.MachineControlPlaneNameLabel},
	[]string{"metadata", "labels", clusterv1.MachineDeploymentNameLabel},
	[]string{"spec", "hostSelector"},
	[]string{"spec", "failureDomain"},
)

// TrimInfrastructure is the cache transform of kinds that [Cached] does not list. Of BareMetalHosts and infrastructure
// machines, which are the only objects without a type, it keeps the fields that are read. Once the host of an
// infrastructure machine is chosen, nothing is applied to it, and the record of what we applied is not needed.
func TrimInfrastructure(in any) (any, error) {
	if host, ok := in.(*metal3.Host); ok {
		return trimHost(host), nil
	}
	machine, ok := in.(*unstructured.Unstructured)
	if !ok {
		return apply.KeepOwn(writer.FieldOwner)(in)
	}
	if chosen := machine.GetAnnotations()[metal3.HostAnnotation] != ""; chosen {
		return kube.SelectFields(machine, readFields), nil
	}
	kept := kube.SelectFields(machine, readBeforehand)
	kept.SetManagedFields(apply.Own(writer.FieldOwner, machine.GetManagedFields()))
	return kept, nil
}
