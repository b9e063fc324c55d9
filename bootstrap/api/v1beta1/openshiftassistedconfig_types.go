package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// OpenshiftAssistedConfigFinalizer keeps an OpenshiftAssistedConfig until its Agent and its InfraEnv are gone.
	OpenshiftAssistedConfigFinalizer = "openshiftassistedconfig.bootstrap.cluster.x-k8s.io/deprovision"

	// DiscoveryIgnitionOverrideAnnotation holds a JSON ignition that is merged into the discovery image
	// (InfraEnv.spec.ignitionConfigOverride).
	DiscoveryIgnitionOverrideAnnotation = "openshiftassistedconfig.cluster.x-k8s.io/discovery-ignition-override"

	// IgnitionOverrideAnnotation holds a JSON ignition, of version 3.2.0 or older, that is merged over the generated ignition of the installed host.
	IgnitionOverrideAnnotation = "openshiftassistedconfig.cluster.x-k8s.io/ignition-override"

	// MachineConfigServerCAAnnotation holds, on the AgentClusterInstall of an installed cluster that hosts are to join, the certificates (PEM) by which they recognise its machine config
	// server, from which they get their configuration. The control plane provider writes it. Without it assisted-service has hosts fetch that by plain HTTP.
	MachineConfigServerCAAnnotation = "bootstrap.cluster.x-k8s.io/machine-config-server-ca"

	// ArbiterLabel marks the control-plane Machine whose host becomes an arbiter of the cluster instead of a master, and what belongs to it, for people and their selectors. The control
	// plane provider sets it. It decides nothing: that does spec.role of the Machine's OpenshiftAssistedConfig.
	ArbiterLabel = "bootstrap.cluster.x-k8s.io/arbiter"

	// ClusterWithArbiterAnnotation marks the AgentClusterInstall of a control plane with an arbiter, which is none of two nodes with fencing, whatever is counted in it: an assisted-service
	// from before arbiters has no field for their number. The control plane provider sets it.
	ClusterWithArbiterAnnotation = "bootstrap.cluster.x-k8s.io/cluster-with-arbiter"

	// InstallationGivenUpAnnotation marks the AgentClusterInstall of a failed installation that is given up, so that it can be tried again: none of its hosts has a Node. The control plane
	// provider sets it.
	InstallationGivenUpAnnotation = "bootstrap.cluster.x-k8s.io/installation-given-up"

	// ConfigNameLabel marks an InfraEnv with the name of the OpenshiftAssistedConfig that it serves.
	ConfigNameLabel = "bootstrap.cluster.x-k8s.io/openshiftAssistedConfig"
)

// BootMode is the way in which a host gets to run the discovery agent.
// +kubebuilder:validation:Enum=LiveISO;DiskImage
type BootMode string

const (
	// BootModeLiveISO boots the host from the InfraEnv's live ISO, whose URL is put into the Metal3Machine.
	BootModeLiveISO BootMode = "LiveISO"
	// BootModeDiskImage boots the host from an RHCOS or SCOS disk image with the InfraEnv's discovery ignition as user data.
	BootModeDiskImage BootMode = "DiskImage"
)

// HostRole is what the host of a control-plane Machine becomes instead of a master.
// +kubebuilder:validation:Enum=Arbiter
type HostRole string

// HostRoleArbiter makes the host an arbiter: a member of etcd that is no master.
const HostRoleArbiter HostRole = "Arbiter"

// OpenshiftAssistedConfigSpec says how a host is discovered and what the installed node gets.
// Discovery settings (proxy, NTP sources, trust bundle...) may change until the host has booted; after that they have no effect.
// +kubebuilder:validation:XValidation:rule="!has(self.discoveryKernelArguments) || !has(self.bootMode) || self.bootMode != 'DiskImage'",message="discoveryKernelArguments are those of the live ISO: in boot mode DiskImage there is none"
// +kubebuilder:validation:XValidation:rule="!has(self.bootMode) || self.bootMode != 'DiskImage' || !has(self.installerArguments) || !self.installerArguments.exists(a, a in ['--save-partlabel', '--save-partindex', '--network-dir', '--image-url', '--image-file'])",message="installerArguments: in boot mode DiskImage, in which OpenShift is installed to the disk that the host runs from, only --append-karg, --delete-karg, -n and --copy-network have an effect"
// +kubebuilder:validation:XValidation:rule="!has(self.bootMode) || self.bootMode != 'DiskImage' || !has(self.rootDeviceHints)",message="rootDeviceHints choose nothing in boot mode DiskImage, which writes the disk before the host boots: the infrastructure provider chooses it, Metal3 by the root device hints of the BareMetalHost"
// +kubebuilder:validation:XValidation:rule="!has(self.ntpSources) || !has(self.additionalNTPSources) || size(self.additionalNTPSources) == 0",message="ntpSources are the only ones: additionalNTPSources must be left out beside them"
type OpenshiftAssistedConfigSpec struct {
	// role is what the host of a control-plane Machine becomes instead of a master: Arbiter, a member of etcd that is no master. The control plane provider sets it when it makes the
	// config of the arbiter that spec.arbiter of an OpenshiftAssistedControlPlane asks for, and nobody else does; it does not change. When omitted the host becomes a master, or the worker
	// that its Machine is.
	// +optional
	Role HostRole `json:"role,omitempty"`

	// bootMode is the way in which the host gets to run the discovery agent. When omitted it is LiveISO if the infrastructure
	// machine's image has the format live-iso, and DiskImage otherwise.
	// +optional
	BootMode BootMode `json:"bootMode,omitempty"`

	// proxy is used by the discovery agent.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// pullSecretRef names a Secret of type kubernetes.io/dockerconfigjson in the same namespace. When omitted, the pull secret of
	// the cluster (its ClusterDeployment) is used.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`

	// additionalNTPSources are host names or IP addresses of NTP servers for the discovery agent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AdditionalNTPSources []string `json:"additionalNTPSources,omitempty"`

	// ntpSources are host names or IP addresses of the only NTP servers that the host uses, in place of those that it finds, by DHCP or in its image, and of additionalNTPSources.
	// assisted-service has it from 2026 on; with an older one the host is not discovered, and the condition DiscoveryImageReady says so.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	NTPSources []string `json:"ntpSources,omitempty"`

	// sshAuthorizedKey gives access to the host while it runs the discovery agent.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`

	// nmStateConfigLabelSelector selects the NMStateConfigs (static network configuration, matched by MAC) of the host.
	// +optional
	NMStateConfigLabelSelector *metav1.LabelSelector `json:"nmStateConfigLabelSelector,omitempty"`

	// networkDiscoveryDelaySeconds is for how long a host that boots a minimal ISO waits for its network interfaces before its static networks are applied, which are matched by MAC. It is
	// for interfaces that take their time to appear. assisted-service has it from 2026 on, as ntpSources.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	NetworkDiscoveryDelaySeconds *int32 `json:"networkDiscoveryDelaySeconds,omitempty"`

	// cpuArchitecture of the host. assisted-service takes x86_64 when it is omitted.
	// +optional
	// +kubebuilder:validation:Enum=x86_64;aarch64;arm64;ppc64le;s390x
	CPUArchitecture string `json:"cpuArchitecture,omitempty"`

	// kernelArguments of the installed host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	KernelArguments []KernelArgument `json:"kernelArguments,omitempty"`

	// discoveryKernelArguments change the kernel command line of the live ISO that the host is discovered with. The installed host has kernelArguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	DiscoveryKernelArguments []DiscoveryKernelArgument `json:"discoveryKernelArguments,omitempty"`

	// installerArguments are further arguments of coreos-installer, which writes the host's disk: those that assisted-service allows, such as --copy-network to take the network
	// configuration of the live ISO along, or --save-partlabel data* to keep partitions. Those are there only where nobody wiped the disk before: in boot mode LiveISO, with
	// automatedCleaningMode disabled in Metal3MachineTemplate and BareMetalHost. In boot mode DiskImage coreos-installer is not run, and only --append-karg, --delete-karg, -n and
	// --copy-network have an effect: others are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.startsWith('-') || a in ['--append-karg', '--delete-karg', '-n', '--copy-network', '--network-dir', '--save-partlabel', '--save-partindex', '--image-url', '--image-file'])",message="installerArguments: assisted-service allows --append-karg, --delete-karg, -n, --copy-network, --network-dir, --save-partlabel, --save-partindex, --image-url and --image-file; the value of an argument is the next item"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('\\\\s'))",message="installerArguments must hold no blanks: the value of an argument is the next item"
	InstallerArguments []string `json:"installerArguments,omitempty"`

	// additionalTrustBundle is a PEM bundle of certificates that the discovery agent trusts.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.contains('-----BEGIN CERTIFICATE-----')",message="additionalTrustBundle must hold PEM certificates (-----BEGIN CERTIFICATE-----)"
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`

	// osImageVersion is the OpenShift minor version (4.19) whose RHCOS image runs the discovery agent. When omitted it follows the
	// cluster's release.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]+\.[0-9]+(\.[0-9]+)?(-[0-9A-Za-z.-]+)?$`
	OSImageVersion string `json:"osImageVersion,omitempty"`

	// imageType is the kind of the live ISO: full-iso, the default, has all that the host runs; minimal-iso (about 100 MiB) is for BMCs that read slowly, and fetches the rest when it
	// boots, from assisted-service's image service, which has to be reachable from the host's network. In boot mode DiskImage it has no effect.
	// +optional
	// +kubebuilder:validation:Enum=full-iso;minimal-iso
	ImageType string `json:"imageType,omitempty"`

	// agentLabels are labels that assisted-service gives the host's Agent when it makes it.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$'))",message="the keys of agentLabels must be keys of labels"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains('agent-install.openshift.io/'))",message="agentLabels of agent-install.openshift.io are assisted-service's own"
	AgentLabels map[string]LabelValue `json:"agentLabels,omitempty"`

	// mirrorRegistryRef names a ConfigMap in the same namespace with the keys registries.conf and, optionally, ca-bundle.crt: the
	// registry mirrors of the discovery agent. When omitted, those of the cluster are used.
	// +optional
	MirrorRegistryRef *corev1.LocalObjectReference `json:"mirrorRegistryRef,omitempty"`

	// assistedServiceCA is the certificate authority with which the discovery ignition is downloaded in boot mode DiskImage, when
	// assisted-service serves it with a certificate that the manager does not trust anyway.
	// +optional
	AssistedServiceCA *CABundleReference `json:"assistedServiceCA,omitempty"`

	// preBootstrapCommands are run once, as root, by a shell on the installed host before its kubelet starts.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	PreBootstrapCommands []string `json:"preBootstrapCommands,omitempty"`

	// postBootstrapCommands are run once, as root, by a shell on the installed host after its Node has registered.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	PostBootstrapCommands []string `json:"postBootstrapCommands,omitempty"`

	// bootstrapCommandSentinelDir is the directory of the files that mark the commands as done. Default: /var/lib/openshift-agent.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[a-zA-Z0-9_./-]+$`
	BootstrapCommandSentinelDir string `json:"bootstrapCommandSentinelDir,omitempty"`

	// postBootstrapKubeconfigPath is the kubeconfig with which the host looks for its Node before it runs postBootstrapCommands.
	// Default: /var/lib/kubelet/kubeconfig.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/[a-zA-Z0-9_./-]+$`
	PostBootstrapKubeconfigPath string `json:"postBootstrapKubeconfigPath,omitempty"`

	// nodeRegistration says how the host appears as a Node.
	// +optional
	NodeRegistration *NodeRegistration `json:"nodeRegistration,omitempty"`

	// machineConfigPool is the MachineConfigPool of the installed cluster whose configuration the host is installed with. Its Node gets the label
	// node-role.kubernetes.io/<pool>, by which the pool keeps it. The pool has to exist: until it does the host waits for its configuration. When omitted
	// it is worker. Control-plane hosts belong to the pool master: it cannot be set for them.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['master', 'arbiter'])",message="machineConfigPool is for workers: master and arbiter configure hosts of the control plane"
	MachineConfigPool string `json:"machineConfigPool,omitempty"`

	// hostRequirements are the minimum hardware of the host. A host below them is not bound and not approved.
	// +optional
	HostRequirements *HostRequirements `json:"hostRequirements,omitempty"`

	// rootDeviceHints select the disk to which OpenShift is installed: the one that matches all of them. A host of which no disk matches, or several do, is not bound and not approved. A disk to which
	// assisted-service cannot install at the moment counts as a match; optical drives and removable media do not.
	// Root device hints of the host's BareMetalHost count in place of all of these. Without any assisted-service chooses. They are for boot mode LiveISO: in boot mode DiskImage OpenShift
	// is installed to the disk that the host boots from, and these are refused.
	// +optional
	RootDeviceHints *RootDeviceHints `json:"rootDeviceHints,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`
type LabelValue string

// Proxy is an HTTP proxy.
// +kubebuilder:validation:MinProperties=1
type Proxy struct {
	// httpProxy is the URL of the proxy for http.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?://.+)?$`
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the URL of the proxy for https.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?://.+)?$`
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// noProxy is a comma-separated list of domains, addresses and CIDRs that are reached directly.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	NoProxy string `json:"noProxy,omitempty"`
}

// KernelArgument is a change of the kernel command line of the installed host.
type KernelArgument struct {
	// operation is append or delete. To replace a value, delete the old one and append the new one.
	// +required
	// +kubebuilder:validation:Enum=append;delete
	Operation string `json:"operation,omitempty"`

	// value is the argument, key or key=value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Value string `json:"value,omitempty"`
}

// DiscoveryKernelArgument is a change of the kernel command line of the live ISO.
type DiscoveryKernelArgument struct {
	// operation is append, replace or delete.
	// +required
	// +kubebuilder:validation:Enum=append;replace;delete
	Operation string `json:"operation,omitempty"`

	// value is the argument, key or key=value; to replace one, key=old=new.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s"]+$`
	Value string `json:"value,omitempty"`
}

// CABundleReference names a ConfigMap or Secret in the same namespace that holds PEM certificates.
type CABundleReference struct {
	// kind is ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key under which the bundle lies. Default: ca.crt.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// NodeRegistration says how the host appears as a Node. In name, label values and providerID the variables $METADATA_UUID and
// $METADATA_NAME (also with braces around the name), and $METADATA_<KEY> for each key of the host's Metal3 metadata, are resolved
// before the host is installed; UUID is the uid of the BareMetalHost.
// +kubebuilder:validation:MinProperties=1
type NodeRegistration struct {
	// name of the Node and hostname of the host. When omitted, the BareMetalHost's name, or without one the name that the host
	// reports; localhost is replaced by the Machine's name.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^([a-z0-9.-]|[$][A-Za-z_][A-Za-z0-9_]*|[$][{][A-Za-z_][A-Za-z0-9_]*[}])+$')",message="name must be a host name of lower-case letters, digits, '-' and '.', in which variables ($NAME) may stand"
	// +kubebuilder:validation:XValidation:rule="self.contains('$') || size(self) <= 63",message="name must be at most 63 characters: assisted-service refuses longer hostnames"
	Name string `json:"name,omitempty"`

	// kubeletExtraLabels are labels of the Node, each as key=value.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(l, l.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?=(([A-Za-z0-9_.-]|[$][A-Za-z_][A-Za-z0-9_]*|[$][{][A-Za-z_][A-Za-z0-9_]*[}]|\\x22)*)$'))",message="kubeletExtraLabels must be label-key=value; the value may hold letters, digits, '-', '_', '.' and variables ($NAME)"
	KubeletExtraLabels []string `json:"kubeletExtraLabels,omitempty"`

	// providerID of the Node. When omitted it is left to the infrastructure provider.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9-]+://[^\\\\s`\\x27\\\\\\\\]+$')",message="providerID must look like scheme://path, in which variables ($NAME) may stand"
	ProviderID string `json:"providerID,omitempty"`
}

// HostRequirements are the minimum hardware of a host.
// +kubebuilder:validation:MinProperties=1
type HostRequirements struct {
	// minCPUCores is the minimum number of CPU cores.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCPUCores int32 `json:"minCPUCores,omitempty"`

	// minMemory is the minimum usable memory, for example 32Gi.
	// +optional
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`

	// minDiskSize is the minimum size of the installation disk, for example 120Gi. Without root device hints the disk that
	// assisted-service chose stays if it is large enough; else it is chosen among the large enough in the same order.
	// +optional
	MinDiskSize *resource.Quantity `json:"minDiskSize,omitempty"`
}

// RootDeviceHints tell a disk of a host, in the way of the root device hints of a BareMetalHost.
// +kubebuilder:validation:MinProperties=1
type RootDeviceHints struct {
	// deviceName is the name of the disk, such as /dev/sda, or a link to it in /dev/disk/by-path or /dev/disk/by-id.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^/dev/[^\s]+$`
	DeviceName string `json:"deviceName,omitempty"`

	// hctl is the SCSI address of the disk: host, channel, target and LUN, such as 0:0:0:0.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]+:[0-9]+:[0-9]+:[0-9]+$`
	HCTL string `json:"hctl,omitempty"`

	// model is the model of the disk, or a part of it, whatever the case of letters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`

	// vendor is the maker of the disk, or a part of its name, whatever the case of letters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`

	// serialNumber is the whole serial number of the disk.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`

	// minSizeGigabytes is the minimum size of the disk. Ironic counts in GiB, assisted-service in GB (10^9 bytes): a host with a matching disk between both readings is not bound and not approved.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSizeGigabytes int32 `json:"minSizeGigabytes,omitempty"`

	// wwn is the World Wide Name of the disk, such as 0x5000c500a0b1c2d3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	WWN string `json:"wwn,omitempty"`

	// wwnWithExtension is the World Wide Name of the disk with the extension of its vendor.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	WWNWithExtension string `json:"wwnWithExtension,omitempty"`

	// wwnVendorExtension is the extension of the vendor alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`

	// rotational is true for spinning disks, and false for all others.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}

// OpenshiftAssistedConfigStatus is what was observed of the host.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigStatus struct {
	// conditions tell how far the host is, what is waited for and what to do about it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is the part of the status that Cluster API reads to let the Machine go on.
	// +optional
	Initialization OpenshiftAssistedConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// dataSecretName is the name of the Secret with the bootstrap data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// bootMode is the boot mode in force; it does not change once the bootstrap data was handed out.
	// +optional
	BootMode BootMode `json:"bootMode,omitempty"`

	// agentRef names the Agent of the host that was identified as this Machine's.
	// +optional
	AgentRef *corev1.LocalObjectReference `json:"agentRef,omitempty"`

	// installationProgress is the stage that the host's installation has reached, in assisted-service's words. A stage that is over within seconds may be left out.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	InstallationProgress string `json:"installationProgress,omitempty"`

	// installationStageStartTime is since when the host is in that stage, as assisted-service tells it.
	// +optional
	InstallationStageStartTime *metav1.Time `json:"installationStageStartTime,omitempty"`

	// installationPercentage is how many of the stages the host has reached, as assisted-service counts them: 0 to 100. It changes only with the stage.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	InstallationPercentage *int32 `json:"installationPercentage,omitempty"`

	// observedGeneration is the generation of the spec that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// OpenshiftAssistedConfigInitializationStatus is latched: what became true stays true.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigInitializationStatus struct {
	// dataSecretCreated is true once the Secret with the bootstrap data exists and the boot image is in place.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// OpenshiftAssistedConfig is the bootstrap configuration of one Machine: it brings one host from power-on to an approved Agent.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedconfigs,scope=Namespaced,categories=cluster-api,shortName=oac;oacs
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="True once the host is installed"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="How far the host is"
// +kubebuilder:printcolumn:name="Agent",type="string",JSONPath=".status.agentRef.name",description="Agent of the host"
// +kubebuilder:printcolumn:name="Stage",type="string",JSONPath=".status.installationProgress",description="Installation stage"
// +kubebuilder:printcolumn:name="Stage Age",type="date",JSONPath=".status.installationStageStartTime",description="Time that the host has been in this stage"
// +kubebuilder:printcolumn:name="Percentage",type="integer",priority=10,JSONPath=".status.installationPercentage",description="How many of the stages are reached"
// +kubebuilder:printcolumn:name="Boot Mode",type="string",priority=10,JSONPath=".status.bootMode",description="Boot mode in force"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:validation:XValidation:rule="!oldSelf.?status.initialization.dataSecretCreated.orValue(false) || (has(self.spec) && has(self.spec.bootMode) ? self.spec.bootMode : 'unset') == (has(oldSelf.spec) && has(oldSelf.spec.bootMode) ? oldSelf.spec.bootMode : 'unset')",message="spec.bootMode is immutable once the bootstrap data was handed out: delete the Machine, which wipes its host, to boot the host in another way"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'HostApproved' && c.status == 'True')) || (has(self.spec) && has(self.spec.machineConfigPool) ? self.spec.machineConfigPool : 'worker') == (has(oldSelf.spec) && has(oldSelf.spec.machineConfigPool) ? oldSelf.spec.machineConfigPool : 'worker')",message="spec.machineConfigPool is immutable once the host was approved: move its Node to another pool in the cluster; before the installation, add the pool to the manifests, or delete the Machine, which wipes its host"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.role) ? self.spec.role : 'none') == (has(oldSelf.spec) && has(oldSelf.spec.role) ? oldSelf.spec.role : 'none')",message="spec.role is immutable: the control plane provider sets it when it makes the config of an arbiter; delete the Machine, which wipes its host, and one of the missing role takes its place"
type OpenshiftAssistedConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec says how the host is discovered and what the installed node gets.
	// +optional
	Spec OpenshiftAssistedConfigSpec `json:"spec,omitempty,omitzero"`
	// status is what was observed of the host.
	// +optional
	Status OpenshiftAssistedConfigStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the object.
func (c *OpenshiftAssistedConfig) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (c *OpenshiftAssistedConfig) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// OpenshiftAssistedConfigList is a list of OpenshiftAssistedConfig.
// +kubebuilder:object:root=true
type OpenshiftAssistedConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenshiftAssistedConfig `json:"items"`
}

// OpenshiftAssistedConfigTemplateSpec holds the template.
type OpenshiftAssistedConfigTemplateSpec struct {
	// template is what each OpenshiftAssistedConfig is made from.
	// +required
	Template OpenshiftAssistedConfigTemplateResource `json:"template,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplateResource is what each OpenshiftAssistedConfig is made from.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigTemplateResource struct {
	// metadata of the objects that are made.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec of the objects that are made.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role is for control-plane Machines: set spec.arbiter of the OpenshiftAssistedControlPlane, which makes one of them an arbiter"
	Spec OpenshiftAssistedConfigSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplate is what a MachineDeployment or MachineSet makes OpenshiftAssistedConfigs from.
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedconfigtemplates,scope=Namespaced,categories=cluster-api,shortName=oact
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Boot Mode",type="string",JSONPath=".spec.template.spec.bootMode",description="Boot mode, if chosen"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
type OpenshiftAssistedConfigTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec holds the template.
	// +required
	Spec OpenshiftAssistedConfigTemplateSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplateList is a list of OpenshiftAssistedConfigTemplate.
// +kubebuilder:object:root=true
type OpenshiftAssistedConfigTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenshiftAssistedConfigTemplate `json:"items"`
}
