package assistedsim

import (
	"github.com/openshift/assisted-service/api/common"
	"github.com/openshift/assisted-service/models"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// addToScheme registers the kinds of the service with all fields that it reads and writes. The providers decode few of
// them. The fields must still be in the objects: the size of the objects determines the cost of a provider.
func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(aiv1beta1.GroupVersion,
		&Agent{}, &AgentList{}, &InfraEnv{}, &InfraEnvList{}, &aiv1beta1.NMStateConfig{}, &aiv1beta1.NMStateConfigList{},
	)
	metav1.AddToGroupVersion(scheme, aiv1beta1.GroupVersion)
	return nil
}

// Agent is a host.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type Agent struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AgentSpec   `json:"spec,omitempty"`
	Status AgentStatus `json:"status,omitempty"`
}

// AgentList is a list of Agents.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type AgentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Agent `json:"items"`
}

// AgentSpec are the settings of a host.
//
// +kubebuilder:object:generate=true
type AgentSpec struct {
	ClusterDeploymentName       *aiv1beta1.ClusterReference `json:"clusterDeploymentName,omitempty"`
	Role                        models.HostRole             `json:"role"`
	Hostname                    string                      `json:"hostname,omitempty"`
	MachineConfigPool           string                      `json:"machineConfigPool,omitempty"`
	Approved                    bool                        `json:"approved"`
	InstallationDiskID          string                      `json:"installation_disk_id,omitempty"`
	InstallationDiskPath        string                      `json:"installation_disk_path,omitempty"`
	InstallerArgs               string                      `json:"installerArgs,omitempty"`
	IgnitionConfigOverrides     string                      `json:"ignitionConfigOverrides,omitempty"`
	NodeLabels                  map[string]string           `json:"nodeLabels,omitempty"`
	FencingCredentialsSecretRef string                      `json:"fencingCredentialsSecretRef,omitempty"`
}

// AgentStatus is the state of a host.
//
// +kubebuilder:object:generate=true
type AgentStatus struct {
	Bootstrap          bool                     `json:"bootstrap,omitempty"`
	Role               models.HostRole          `json:"role,omitempty"`
	Kind               string                   `json:"kind,omitempty"`
	Inventory          HostInventory            `json:"inventory,omitempty"`
	Progress           HostProgressInfo         `json:"progress,omitempty"`
	NtpSources         []HostNTPSources         `json:"ntpSources,omitempty"`
	Conditions         []conditionsv1.Condition `json:"conditions,omitempty"`
	DebugInfo          DebugInfo                `json:"debugInfo,omitempty"`
	ValidationsInfo    common.ValidationsStatus `json:"validationsInfo,omitempty"`
	InstallationDiskID string                   `json:"installation_disk_id,omitempty"`
	DeprovisionInfo    *AgentDeprovisionInfo    `json:"deprovision_info,omitempty"`
}

// DebugInfo is the state of a host in the database.
type DebugInfo struct {
	EventsURL string `json:"eventsURL,omitempty"`
	State     string `json:"state,omitempty"`
	StateInfo string `json:"stateInfo,omitempty"`
}

// HostProgressInfo is the progress of an installation.
//
// +kubebuilder:object:generate=true
type HostProgressInfo struct {
	CurrentStage           models.HostStage   `json:"currentStage,omitempty"`
	ProgressStages         []models.HostStage `json:"progressStages,omitempty"`
	ProgressInfo           string             `json:"progressInfo,omitempty"`
	InstallationPercentage int64              `json:"installationPercentage,omitempty"`
	StageStartTime         *metav1.Time       `json:"stageStartTime,omitempty"`
	StageUpdateTime        *metav1.Time       `json:"stageUpdateTime,omitempty"`
}

// HostNTPSources is an NTP server of a host.
type HostNTPSources struct {
	SourceName  string             `json:"sourceName,omitempty"`
	SourceState models.SourceState `json:"sourceState,omitempty"`
}

// AgentDeprovisionInfo is the former Node of an unbound host.
type AgentDeprovisionInfo struct {
	ClusterName      string `json:"cluster_name,omitempty"`
	ClusterNamespace string `json:"cluster_namespace,omitempty"`
	NodeName         string `json:"node_name,omitempty"`
	Message          string `json:"message,omitempty"`
}

// HostInventory is the hardware of a host.
//
// +kubebuilder:object:generate=true
type HostInventory struct {
	Hostname     string               `json:"hostname,omitempty"`
	BmcAddress   string               `json:"bmcAddress,omitempty"`
	BmcV6address string               `json:"bmcV6Address,omitempty"`
	Memory       aiv1beta1.HostMemory `json:"memory,omitempty"`
	Cpu          HostCPU              `json:"cpu,omitempty"`
	Interfaces   []HostInterface      `json:"interfaces,omitempty"`
	Disks        []HostDisk           `json:"disks,omitempty"`
	Gpus         []aiv1beta1.HostGPU  `json:"gpus,omitempty"`
	Boot         HostBoot             `json:"boot,omitempty"`
	SystemVendor HostSystemVendor     `json:"systemVendor,omitempty"`
}

// HostCPU are processors.
//
// +kubebuilder:object:generate=true
type HostCPU struct {
	Count          int64    `json:"count,omitempty"`
	ClockMegahertz int64    `json:"clockMegahertz,omitempty"`
	Flags          []string `json:"flags,omitempty"`
	ModelName      string   `json:"modelName,omitempty"`
	Architecture   string   `json:"architecture,omitempty"`
}

// HostInterface is a network interface.
//
// +kubebuilder:object:generate=true
type HostInterface struct {
	Name          string   `json:"name,omitempty"`
	MacAddress    string   `json:"macAddress,omitempty"`
	IPV4Addresses []string `json:"ipV4Addresses"`
	IPV6Addresses []string `json:"ipV6Addresses"`
	Flags         []string `json:"flags"`
	Vendor        string   `json:"vendor,omitempty"`
	Product       string   `json:"product,omitempty"`
	HasCarrier    bool     `json:"hasCarrier,omitempty"`
	Mtu           int64    `json:"mtu,omitempty"`
	Biosdevname   string   `json:"biosDevName,omitempty"`
	ClientID      string   `json:"clientID,omitempty"`
	SpeedMbps     int64    `json:"speedMbps,omitempty"`
}

// HostDisk is a disk.
//
// +kubebuilder:object:generate=true
type HostDisk struct {
	ID                      string                      `json:"id"`
	DriveType               string                      `json:"driveType,omitempty"`
	Vendor                  string                      `json:"vendor,omitempty"`
	Name                    string                      `json:"name,omitempty"`
	Path                    string                      `json:"path,omitempty"`
	Hctl                    string                      `json:"hctl,omitempty"`
	ByPath                  string                      `json:"byPath,omitempty"`
	ByID                    string                      `json:"byID,omitempty"`
	Model                   string                      `json:"model,omitempty"`
	Wwn                     string                      `json:"wwn,omitempty"`
	Serial                  string                      `json:"serial,omitempty"`
	SizeBytes               int64                       `json:"sizeBytes,omitempty"`
	Bootable                bool                        `json:"bootable,omitempty"`
	Smart                   string                      `json:"smart,omitempty"`
	InstallationEligibility HostInstallationEligibility `json:"installationEligibility,omitempty"`
	IoPerf                  HostIOPerf                  `json:"ioPerf,omitempty"`
}

// HostInstallationEligibility is whether a disk can be installed to.
//
// +kubebuilder:object:generate=true
type HostInstallationEligibility struct {
	Eligible           bool     `json:"eligible,omitempty"`
	NotEligibleReasons []string `json:"notEligibleReasons"`
}

// HostIOPerf is the speed of a disk.
type HostIOPerf struct {
	SyncDurationMilliseconds int64 `json:"syncDurationMilliseconds,omitempty"`
}

// HostBoot is how a host booted.
type HostBoot struct {
	CurrentBootMode string `json:"currentBootMode,omitempty"`
	PxeInterface    string `json:"pxeInterface,omitempty"`
	DeviceType      string `json:"deviceType,omitempty"`
}

// HostSystemVendor is the product of a host.
type HostSystemVendor struct {
	SerialNumber string `json:"serialNumber,omitempty"`
	ProductName  string `json:"productName,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
	Virtual      bool   `json:"virtual,omitempty"`
}

// InfraEnv is a discovery image.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type InfraEnv struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfraEnvSpec   `json:"spec,omitempty"`
	Status InfraEnvStatus `json:"status,omitempty"`
}

// InfraEnvList is a list of InfraEnvs.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type InfraEnvList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InfraEnv `json:"items"`
}

// InfraEnvSpec adds the fields of a discovery image that the providers do not use.
//
// +kubebuilder:object:generate=true
type InfraEnvSpec struct {
	aiv1beta1.InfraEnvSpec `json:",inline"`

	IPXEScriptType string         `json:"ipxeScriptType,omitempty"`
	AgentApproval  *AgentApproval `json:"agentApproval,omitempty"`
}

// AgentApproval is the approval of hosts when they register.
type AgentApproval struct {
	AutoApprove bool `json:"autoApprove,omitempty"`
}

// InfraEnvStatus is the state of a discovery image.
//
// +kubebuilder:object:generate=true
type InfraEnvStatus struct {
	ISODownloadURL     string                   `json:"isoDownloadURL,omitempty"`
	CreatedTime        *metav1.Time             `json:"createdTime,omitempty"`
	Conditions         []conditionsv1.Condition `json:"conditions,omitempty"`
	AgentLabelSelector metav1.LabelSelector     `json:"agentLabelSelector,omitempty"`
	InfraEnvDebugInfo  InfraEnvDebugInfo        `json:"debugInfo"`
	BootArtifacts      BootArtifacts            `json:"bootArtifacts"`
}

// InfraEnvDebugInfo are further URLs of a discovery image.
type InfraEnvDebugInfo struct {
	EventsURL                string `json:"eventsURL"`
	StaticNetworkDownloadURL string `json:"staticNetworkDownloadURL,omitempty"`
}

// BootArtifacts are the files of a discovery image.
type BootArtifacts struct {
	InitrdURL            string `json:"initrd"`
	RootfsURL            string `json:"rootfs"`
	KernelURL            string `json:"kernel"`
	IpxeScriptURL        string `json:"ipxeScript"`
	DiscoveryIgnitionURL string `json:"discoveryIgnitionURL"`
}
