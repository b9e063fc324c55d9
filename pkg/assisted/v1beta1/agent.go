package v1beta1

import (
	"strings"

	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of an Agent.
const (
	// SpecSyncedCondition is true if assisted-service accepted the spec.
	SpecSyncedCondition conditionsv1.ConditionType = "SpecSynced"
	// ConnectedCondition is true while the discovery agent of the host polls assisted-service.
	ConnectedCondition conditionsv1.ConditionType = "Connected"
	// RequirementsMetCondition is true if the host can be installed, is installed, or failed.
	RequirementsMetCondition conditionsv1.ConditionType = "RequirementsMet"
	// ValidatedCondition is true if all validations of the host pass.
	ValidatedCondition conditionsv1.ConditionType = "Validated"
	// InstalledCondition is true if the host is installed.
	InstalledCondition conditionsv1.ConditionType = "Installed"
	// BoundCondition is true if the host belongs to a cluster.
	BoundCondition conditionsv1.ConditionType = "Bound"
	// CleanupCondition exists only on an Agent that is being deleted, with the reason why its Node is left in the
	// workload cluster.
	CleanupCondition conditionsv1.ConditionType = "Cleanup"
)

// Reasons of the conditions of an Agent.
const (
	// AgentDisconnectedReason of Connected: the host has not polled for three minutes.
	AgentDisconnectedReason = "AgentIsDisconnected"
	// ValidationsFailingReason of Validated: the message names the validations.
	ValidationsFailingReason = "ValidationsFailing"
	// InputErrorReason of SpecSynced: the spec is invalid.
	InputErrorReason = "InputError"
)

// InfraEnvNameLabel is the label of an Agent with the name of the InfraEnv whose image the host booted.
const InfraEnvNameLabel = "infraenvs.agent-install.openshift.io"

// IsServiceLabel reports whether assisted-service sets a label of an Agent for its own purpose, such as
// [InfraEnvNameLabel] and the labels of the inventory. No other client may set such a label.
func IsServiceLabel(key string) bool { return strings.Contains(key, GroupVersion.Group) }

// Agent is a host that booted the discovery image of an InfraEnv in the same namespace. Its name is the UUID of the
// host. assisted-service creates it when the host registers.
//
// +kubebuilder:object:root=true
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AgentSpec   `json:"spec,omitempty"`
	Status AgentStatus `json:"status,omitempty"`
}

// AgentList is a list of Agents.
//
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Agent `json:"items"`
}

// AgentSpec is how a host is installed. Only ClusterDeploymentName and Approved have an effect after the host was
// bound. The fields Role and Approved are required by the schema: they are written even if they are zero.
type AgentSpec struct {
	// ClusterDeploymentName is the cluster to which the host is bound.
	ClusterDeploymentName *ClusterReference `json:"clusterDeploymentName,omitempty"`
	Role                  HostRole          `json:"role"`
	// Hostname is the name of the host and its Node. Default: the name that the host reports.
	Hostname          string `json:"hostname,omitempty"`
	MachineConfigPool string `json:"machineConfigPool,omitempty"`
	// Approved permits the installation, which overwrites the disk of the host.
	Approved bool `json:"approved"`
	// InstallationDiskID is the [HostDisk.ID] of the disk that is overwritten. Default: assisted-service's choice.
	InstallationDiskID string `json:"installation_disk_id,omitempty"`
	// InstallerArgs is a JSON array of arguments of coreos-installer.
	InstallerArgs string `json:"installerArgs,omitempty"`
	// IgnitionConfigOverrides is an ignition in JSON, which is merged into the ignition of the installed host.
	IgnitionConfigOverrides string `json:"ignitionConfigOverrides,omitempty"`
	// NodeLabels are set on the Node when it is ready.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// FencingCredentialsSecretRef is the name of a Secret in the namespace of the Agent.
	FencingCredentialsSecretRef string `json:"fencingCredentialsSecretRef,omitempty"`
}

// ClusterReference refers to a ClusterDeployment.
type ClusterReference struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// AgentStatus is the state of a host as assisted-service observed it.
type AgentStatus struct {
	// Bootstrap is true for the master that runs the temporary control plane of the installation.
	Bootstrap bool `json:"bootstrap,omitempty"`
	// Role is the role that the host has or would get.
	Role HostRole `json:"role,omitempty"`
	// Kind is Host, or AddToExistingClusterHost if the cluster was already installed.
	Kind       string                   `json:"kind,omitempty"`
	Inventory  HostInventory            `json:"inventory,omitempty"`
	Progress   HostProgressInfo         `json:"progress,omitempty"`
	Conditions []conditionsv1.Condition `json:"conditions,omitempty"`
	DebugInfo  DebugInfo                `json:"debugInfo,omitempty"`
	// InstallationDiskID is the [HostDisk.ID] of the disk that the installation will use.
	InstallationDiskID string `json:"installation_disk_id,omitempty"`
}

// DebugInfo is the state of a host in the database of assisted-service.
type DebugInfo struct {
	// State is one of the HostStatus constants.
	State string `json:"state,omitempty"`
	// StateInfo explains the state.
	StateInfo string `json:"stateInfo,omitempty"`
}

// HostProgressInfo is the progress of the installation of a host.
type HostProgressInfo struct {
	CurrentStage           HostStage    `json:"currentStage,omitempty"`
	InstallationPercentage int64        `json:"installationPercentage,omitempty"`
	StageStartTime         *metav1.Time `json:"stageStartTime,omitempty"`
}

// HostInventory is what the discovery agent found on a host.
type HostInventory struct {
	Hostname     string           `json:"hostname,omitempty"`
	Memory       HostMemory       `json:"memory,omitempty"`
	Cpu          HostCPU          `json:"cpu,omitempty"`
	Interfaces   []HostInterface  `json:"interfaces,omitempty"`
	Disks        []HostDisk       `json:"disks,omitempty"`
	Gpus         []HostGPU        `json:"gpus,omitempty"`
	SystemVendor HostSystemVendor `json:"systemVendor,omitempty"`
}

// HostMemory is the memory of a host.
type HostMemory struct {
	PhysicalBytes int64 `json:"physicalBytes,omitempty"`
	// UsableBytes is without the memory that the firmware reserves.
	UsableBytes int64 `json:"usableBytes,omitempty"`
}

// HostCPU are the processors of a host.
type HostCPU struct {
	// Count is the number of logical processors.
	Count int64 `json:"count,omitempty"`
}

// HostInterface is a network interface of a host.
type HostInterface struct {
	MacAddress string `json:"macAddress,omitempty"`
	// IPV4Addresses and IPV6Addresses are addresses with prefix length.
	IPV4Addresses []string `json:"ipV4Addresses,omitempty"`
	IPV6Addresses []string `json:"ipV6Addresses,omitempty"`
}

// HostDisk is a disk of a host.
type HostDisk struct {
	// ID identifies the disk for assisted-service. It is the by-id path, if there is one.
	ID string `json:"id"`
	// DriveType is SSD, HDD, ODD, FDD or another type.
	DriveType string `json:"driveType,omitempty"`
	Vendor    string `json:"vendor,omitempty"`
	Name      string `json:"name,omitempty"`
	// Path, ByPath and ByID are paths of the device, of which only the last two survive a reboot.
	Path   string `json:"path,omitempty"`
	ByPath string `json:"byPath,omitempty"`
	ByID   string `json:"byID,omitempty"`
	// Hctl is the SCSI address.
	Hctl   string `json:"hctl,omitempty"`
	Model  string `json:"model,omitempty"`
	Wwn    string `json:"wwn,omitempty"`
	Serial string `json:"serial,omitempty"`

	SizeBytes               int64                       `json:"sizeBytes,omitempty"`
	InstallationEligibility HostInstallationEligibility `json:"installationEligibility,omitempty"`
}

// HostGPU is a graphics controller of a host. That of the BMC is listed, too.
type HostGPU struct {
	// VendorID and DeviceID are PCI IDs in hexadecimal digits.
	VendorID string `json:"vendorID,omitempty"`
	DeviceID string `json:"deviceID,omitempty"`
}

// HostInstallationEligibility is whether assisted-service can install to a disk.
type HostInstallationEligibility struct {
	Eligible           bool     `json:"eligible,omitempty"`
	NotEligibleReasons []string `json:"notEligibleReasons,omitempty"`
}

// HostSystemVendor identifies the server of a host.
type HostSystemVendor struct {
	SerialNumber string `json:"serialNumber,omitempty"`
}
