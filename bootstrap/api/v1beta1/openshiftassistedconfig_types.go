package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// OpenshiftAssistedConfigFinalizer blocks the deletion of an OpenshiftAssistedConfig until its Agent and its
	// InfraEnv are deleted.
	OpenshiftAssistedConfigFinalizer = "openshiftassistedconfig.bootstrap.cluster.x-k8s.io/deprovision"

	// DiscoveryIgnitionOverrideAnnotation contains an ignition config (JSON) that assisted-service merges into the
	// discovery image (InfraEnv.spec.ignitionConfigOverride).
	DiscoveryIgnitionOverrideAnnotation = "openshiftassistedconfig.cluster.x-k8s.io/discovery-ignition-override"

	// IgnitionOverrideAnnotation contains an ignition config (JSON) of version 3.2.0 or older. It is merged over the
	// generated ignition config of the installed host.
	IgnitionOverrideAnnotation = "openshiftassistedconfig.cluster.x-k8s.io/ignition-override"

	// MachineConfigServerCAAnnotation of the AgentClusterInstall of an installed cluster contains certificates (PEM).
	// Hosts that join the cluster verify its machine config server, which serves their configuration, with these
	// certificates. The control plane provider sets the annotation. Without it assisted-service makes hosts fetch their
	// configuration over plain HTTP.
	MachineConfigServerCAAnnotation = "bootstrap.cluster.x-k8s.io/machine-config-server-ca"

	// RunningReleaseAnnotation of the AgentClusterInstall of an installed cluster contains the OpenShift or OKD release
	// that the cluster completed last, without leading v. Hosts that join the cluster boot the discovery image of its minor
	// version. The control plane provider sets the annotation.
	RunningReleaseAnnotation = "bootstrap.cluster.x-k8s.io/running-release"

	// ArbiterLabel marks the control-plane Machine whose host becomes an arbiter instead of a master, and the objects
	// of the Machine. The control plane provider sets it, for users and their selectors. The label decides nothing:
	// spec.role of the OpenshiftAssistedConfig decides the role.
	ArbiterLabel = "bootstrap.cluster.x-k8s.io/arbiter"

	// ClusterWithArbiterAnnotation marks the AgentClusterInstall of a control plane with an arbiter. Such a cluster is
	// not a cluster of two nodes with fencing, even if the AgentClusterInstall counts two hosts. The reason: an
	// assisted-service from before arbiters has no field for their number. The control plane provider sets the
	// annotation.
	ClusterWithArbiterAnnotation = "bootstrap.cluster.x-k8s.io/cluster-with-arbiter"

	// MirrorsDigestAnnotation holds, on an AgentClusterInstall or InfraEnv, a digest of the ConfigMap with the registry
	// mirrors that the object was registered with. assisted-service reads the ConfigMap at a registration only. The
	// control plane provider and the bootstrap provider set the annotation.
	MirrorsDigestAnnotation = "bootstrap.cluster.x-k8s.io/mirrors-digest"

	// InstallationGivenUpAnnotation marks the AgentClusterInstall of a failed installation that is given up, so that it
	// can be retried. No host of the installation has a Node. The control plane provider sets the annotation.
	InstallationGivenUpAnnotation = "bootstrap.cluster.x-k8s.io/installation-given-up"

	// RefreshAnnotation is the time, in RFC 3339, at which the bootstrap provider touched an Agent whose status had not
	// changed for minutes. assisted-service publishes the status of an Agent again when the Agent changes.
	RefreshAnnotation = "bootstrap.cluster.x-k8s.io/refresh-requested"

	// ConfigNameLabel of an InfraEnv contains the name of the OpenshiftAssistedConfig that uses the InfraEnv.
	ConfigNameLabel = "bootstrap.cluster.x-k8s.io/openshiftAssistedConfig"
)

// BootMode defines how a host boots the discovery agent.
// +kubebuilder:validation:Enum=LiveISO;DiskImage
type BootMode string

const (
	// BootModeLiveISO boots the host from the live ISO of its InfraEnv. The provider writes the URL of the ISO into the
	// Metal3Machine.
	BootModeLiveISO BootMode = "LiveISO"
	// BootModeDiskImage boots the host from an RHCOS or SCOS disk image. The user data is the discovery ignition of its
	// InfraEnv.
	BootModeDiskImage BootMode = "DiskImage"
)

// HostRole is the role of a control-plane host that does not become a master.
// +kubebuilder:validation:Enum=Arbiter
type HostRole string

// HostRoleArbiter makes the host an arbiter: a member of etcd that is not a master.
const HostRoleArbiter HostRole = "Arbiter"

// OpenshiftAssistedConfigSpec defines how a host is discovered and how its Node is configured. Discovery settings, such
// as proxy, NTP sources and trust bundle, can change until the host has booted. Later changes of these settings have no
// effect on the host.
// +kubebuilder:validation:XValidation:rule="!has(self.discoveryKernelArguments) || !has(self.bootMode) || self.bootMode != 'DiskImage'",message="discoveryKernelArguments apply to the live ISO, which boot mode DiskImage does not have: remove them, or set bootMode to LiveISO"
// +kubebuilder:validation:XValidation:rule="!has(self.bootMode) || self.bootMode != 'DiskImage' || !has(self.installerArguments) || !self.installerArguments.exists(a, a in ['--save-partlabel', '--save-partindex', '--network-dir', '--image-url', '--image-file'])",message="installerArguments: in boot mode DiskImage only --append-karg, --delete-karg, -n and --copy-network have an effect, because OpenShift is installed on the disk that the host runs from: remove the other arguments"
// +kubebuilder:validation:XValidation:rule="!has(self.bootMode) || self.bootMode != 'DiskImage' || !has(self.rootDeviceHints)",message="rootDeviceHints have no effect in boot mode DiskImage, which writes the disk before the host boots: remove them, the infrastructure provider chooses the disk (Metal3: by rootDeviceHints of the BareMetalHost)"
// +kubebuilder:validation:XValidation:rule="!has(self.ntpSources) || !has(self.additionalNTPSources) || size(self.additionalNTPSources) == 0",message="ntpSources replace the NTP servers of the image: remove additionalNTPSources"
type OpenshiftAssistedConfigSpec struct {
	// role is the role of a control-plane host that does not become a master. Arbiter: a member of etcd that is not a
	// master. The control plane provider sets this field in the config of the arbiter that spec.arbiter of an
	// OpenshiftAssistedControlPlane defines. Do not set it yourself. The field is immutable. When omitted, the host
	// becomes a master or a worker, as its Machine defines.
	// +optional
	Role HostRole `json:"role,omitempty"`

	// bootMode defines how the host boots the discovery agent. LiveISO: from the live ISO of its InfraEnv. DiskImage:
	// from a disk image that the infrastructure provider writes. When omitted, the mode is LiveISO if the image of the
	// infrastructure machine has the format live-iso, and DiskImage otherwise. The field is immutable once the
	// bootstrap data exists.
	// +optional
	BootMode BootMode `json:"bootMode,omitempty"`

	// proxy is the HTTP proxy of the discovery agent. When omitted, the discovery agent uses no proxy.
	// +optional
	Proxy *Proxy `json:"proxy,omitempty"`

	// pullSecretRef names a Secret of type kubernetes.io/dockerconfigjson in the same namespace. When omitted, the pull
	// secret of the cluster (of its ClusterDeployment) is used.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`

	// additionalNTPSources are host names or IP addresses of NTP servers that the discovery agent uses in addition to
	// those of DHCP and of its image. At most 16. Cannot be combined with ntpSources.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	AdditionalNTPSources []string `json:"additionalNTPSources,omitempty"`

	// ntpSources are host names or IP addresses of NTP servers that the host uses during the discovery. They replace the
	// servers of the image. Servers that DHCP announces stay in use. For installed hosts see spec.config.ntpSources of the
	// OpenshiftAssistedControlPlane. 1 to 16. Cannot be combined with additionalNTPSources. The field needs an
	// assisted-service from August 2026 or newer. With an older one the host is not discovered, and the condition
	// DiscoveryImageReady reports the cause.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	NTPSources []string `json:"ntpSources,omitempty"`

	// sshAuthorizedKey is the public SSH key that gives access to the host, as user core, while it runs the discovery
	// agent. For the installed host see spec.config.sshAuthorizedKey of the OpenshiftAssistedControlPlane.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`

	// nmStateConfigLabelSelector selects the NMStateConfigs of the host in the same namespace. They contain the static
	// network configuration, and match the interfaces of the host by MAC address. When omitted, the host uses DHCP.
	// +optional
	NMStateConfigLabelSelector *metav1.LabelSelector `json:"nmStateConfigLabelSelector,omitempty"`

	// networkDiscoveryDelaySeconds is a time in seconds, 0 to 3600. A host with a minimal ISO waits for its network
	// interfaces for this time before it applies its static network configuration. Set the field for interfaces that
	// appear late, because the configuration matches interfaces by MAC address. The field needs an assisted-service
	// from 2026 or newer.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	NetworkDiscoveryDelaySeconds *int32 `json:"networkDiscoveryDelaySeconds,omitempty"`

	// cpuArchitecture is the CPU architecture of the host: x86_64, aarch64, arm64, ppc64le or s390x. When omitted,
	// assisted-service uses x86_64.
	// +optional
	// +kubebuilder:validation:Enum=x86_64;aarch64;arm64;ppc64le;s390x
	CPUArchitecture string `json:"cpuArchitecture,omitempty"`

	// kernelArguments change the kernel command line of the installed host. At most 64. For the live ISO see
	// discoveryKernelArguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	KernelArguments []KernelArgument `json:"kernelArguments,omitempty"`

	// discoveryKernelArguments change the kernel command line of the live ISO from which the host is discovered. 1 to
	// 64. Not allowed in boot mode DiskImage, which has no live ISO. For the installed host see kernelArguments.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	DiscoveryKernelArguments []DiscoveryKernelArgument `json:"discoveryKernelArguments,omitempty"`

	// installerArguments are additional arguments of coreos-installer, which writes the disk of the host. The value of
	// an argument is the next item. assisted-service allows these arguments: --append-karg, --delete-karg, -n,
	// --copy-network, --network-dir, --save-partlabel, --save-partindex, --image-url and --image-file. Example:
	// --copy-network keeps the network configuration of the live ISO. Example: --save-partlabel data* keeps partitions.
	//
	// Partitions can only be kept if they were not wiped before. Use boot mode LiveISO, and set automatedCleaningMode
	// to disabled in the Metal3MachineTemplate and the BareMetalHost. Boot mode DiskImage does not run
	// coreos-installer: only --append-karg, --delete-karg, -n and --copy-network have an effect, and all other
	// arguments are rejected.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.startsWith('-') || a in ['--append-karg', '--delete-karg', '-n', '--copy-network', '--network-dir', '--save-partlabel', '--save-partindex', '--image-url', '--image-file'])",message="installerArguments: assisted-service allows --append-karg, --delete-karg, -n, --copy-network, --network-dir, --save-partlabel, --save-partindex, --image-url and --image-file; write the value of an argument as the next item"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !a.matches('\\\\s'))",message="installerArguments must not contain whitespace: write the value of an argument as the next item"
	InstallerArguments []string `json:"installerArguments,omitempty"`

	// additionalTrustBundle contains certificate authorities (PEM) that the discovery agent trusts in addition to those
	// of its image.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.contains('-----BEGIN CERTIFICATE-----')",message="additionalTrustBundle must contain PEM certificates (-----BEGIN CERTIFICATE-----)"
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`

	// osImageVersion is the OpenShift version whose RHCOS image runs the discovery agent, such as 4.19.
	// assisted-service must have an OS image of this version. When omitted, the version follows the release of the
	// cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[.][0-9]+([.][0-9]+)?(-[0-9A-Za-z.-]+)?$')",message="osImageVersion must be an OpenShift version without leading v, such as 4.19"
	OSImageVersion string `json:"osImageVersion,omitempty"`

	// imageType is the type of the live ISO. full-iso, the default, contains everything that the host runs. minimal-iso
	// (about 100 MiB) is for BMCs that read slowly: the host downloads the rest from the image service of
	// assisted-service while it boots. The network of the host must reach that image service. The field has no effect
	// in boot mode DiskImage.
	// +optional
	// +kubebuilder:validation:Enum=full-iso;minimal-iso
	ImageType string `json:"imageType,omitempty"`

	// agentLabels are labels that assisted-service sets on the Agent of the host when it creates the Agent. 1 to 16.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && k.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$'))",message="the keys of agentLabels must be label keys, such as example.com/rack"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.contains('agent-install.openshift.io'))",message="agentLabels of agent-install.openshift.io are reserved for assisted-service: remove them"
	AgentLabels map[string]LabelValue `json:"agentLabels,omitempty"`

	// mirrorRegistryRef names a ConfigMap in the same namespace with the registry mirrors of the discovery agent. Its
	// keys are registries.conf and, optionally, ca-bundle.crt. When omitted, the mirrors of the cluster are used.
	// +optional
	MirrorRegistryRef *corev1.LocalObjectReference `json:"mirrorRegistryRef,omitempty"`

	// assistedServiceCA names the certificate authority that verifies assisted-service when the manager downloads the
	// discovery ignition in boot mode DiskImage. When omitted, the manager verifies with the authorities that it trusts
	// already.
	// +optional
	AssistedServiceCA *CABundleReference `json:"assistedServiceCA,omitempty"`

	// preBootstrapCommands run once on the installed host, as root in a shell, before its kubelet starts. At most 128.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	PreBootstrapCommands []string `json:"preBootstrapCommands,omitempty"`

	// postBootstrapCommands run once on the installed host, as root in a shell, after its Node has registered. At most
	// 128.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=8192
	PostBootstrapCommands []string `json:"postBootstrapCommands,omitempty"`

	// bootstrapCommandSentinelDir is the directory on the host for the files that mark the commands as completed.
	// Default: /var/lib/openshift-agent.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[a-zA-Z0-9_./-]+$')",message="bootstrapCommandSentinelDir must be an absolute path of letters, digits, '_', '.', '-' and '/'"
	BootstrapCommandSentinelDir string `json:"bootstrapCommandSentinelDir,omitempty"`

	// postBootstrapKubeconfigPath is the path of the kubeconfig that the host uses to find its Node before it runs
	// postBootstrapCommands. Default: /var/lib/kubelet/kubeconfig.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[a-zA-Z0-9_./-]+$')",message="postBootstrapKubeconfigPath must be an absolute path of letters, digits, '_', '.', '-' and '/'"
	PostBootstrapKubeconfigPath string `json:"postBootstrapKubeconfigPath,omitempty"`

	// nodeRegistration defines name, labels and providerID of the Node of the host.
	// +optional
	NodeRegistration *NodeRegistration `json:"nodeRegistration,omitempty"`

	// machineConfigPool is the MachineConfigPool of the cluster that configures the host from its installation on. The
	// Node gets the label node-role.kubernetes.io/<pool>, by which the pool selects it. Create the pool before the host
	// is installed: without the pool the host waits for its configuration. When omitted, the pool is worker. The field
	// is immutable once the host is approved, and not allowed for control-plane hosts, which belong to the pool master.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="machineConfigPool must be the name of a MachineConfigPool: lowercase letters, digits and '-'"
	// +kubebuilder:validation:XValidation:rule="!(self in ['master', 'arbiter'])",message="machineConfigPool is for workers: name another pool, master and arbiter configure hosts of the control plane"
	MachineConfigPool string `json:"machineConfigPool,omitempty"`

	// hostRequirements define the minimum hardware of the host. A host below the requirements is neither bound nor
	// approved.
	// +optional
	HostRequirements *HostRequirements `json:"hostRequirements,omitempty"`

	// rootDeviceHints select the disk on which OpenShift is installed. Exactly one disk of the host must match all
	// hints. If no disk or several disks match, the host is neither bound nor approved. A disk to which
	// assisted-service cannot install at the moment counts as a match. Optical drives and removable media do not count.
	//
	// Root device hints of the BareMetalHost replace all of these hints. Without any hints assisted-service chooses the
	// disk. Not allowed in boot mode DiskImage, in which OpenShift is installed to the disk that the host boots from.
	// +optional
	RootDeviceHints *RootDeviceHints `json:"rootDeviceHints,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$')",message="the values of agentLabels must be label values: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type LabelValue string

// Proxy defines the proxy of HTTP and HTTPS connections.
// +kubebuilder:validation:MinProperties=1
type Proxy struct {
	// httpProxy is the URL of the proxy of HTTP connections, such as http://proxy.example.com:3128.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://.+)?$')",message="httpProxy must be a URL with http:// or https://, such as http://proxy.example.com:3128"
	HTTPProxy string `json:"httpProxy,omitempty"`

	// httpsProxy is the URL of the proxy of HTTPS connections, such as http://proxy.example.com:3128.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?://.+)?$')",message="httpsProxy must be a URL with http:// or https://, such as http://proxy.example.com:3128"
	HTTPSProxy string `json:"httpsProxy,omitempty"`

	// noProxy is a comma-separated list of domains, IP addresses and CIDRs to which connections are direct, such as
	// .example.com,192.168.111.0/24.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	NoProxy string `json:"noProxy,omitempty"`
}

// KernelArgument is a change of the kernel command line of the installed host.
type KernelArgument struct {
	// operation is append or delete. To replace a value, delete the old argument and append the new one.
	// +required
	// +kubebuilder:validation:Enum=append;delete
	Operation string `json:"operation,omitempty"`

	// value is the argument: key or key=value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s]+$')",message="value must be one kernel argument without spaces: key or key=value"
	Value string `json:"value,omitempty"`
}

// DiscoveryKernelArgument is a change of the kernel command line of the live ISO.
type DiscoveryKernelArgument struct {
	// operation is append, replace or delete.
	// +required
	// +kubebuilder:validation:Enum=append;replace;delete
	Operation string `json:"operation,omitempty"`

	// value is the argument: key or key=value. For operation replace it is key=old=new.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s\\x22]+$')",message="value must be one kernel argument without spaces and quotation marks: key or key=value"
	Value string `json:"value,omitempty"`
}

// CABundleReference names a ConfigMap or Secret in the same namespace that contains certificates (PEM).
type CABundleReference struct {
	// kind of the object: ConfigMap or Secret.
	// +required
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the object whose value is the bundle. Default: ca.crt.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// NodeRegistration defines name, labels and providerID of a Node. In name, label values and providerID the provider
// replaces variables before the host is installed. $METADATA_UUID is the UID of the BareMetalHost, and $METADATA_NAME
// its name. $METADATA_<KEY> is the value of a key of the Metal3 metadata of the host. ${METADATA_NAME} is another form
// of $METADATA_NAME.
// +kubebuilder:validation:MinProperties=1
type NodeRegistration struct {
	// name is the name of the Node and the hostname of the host. At most 63 characters after variables are replaced.
	// When omitted, it is the name of the BareMetalHost or, without a BareMetalHost, the hostname that the host
	// reports. The hostname localhost is replaced by the name of the Machine.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^([a-z0-9.-]|[$][A-Za-z_][A-Za-z0-9_]*|[$][{][A-Za-z_][A-Za-z0-9_]*[}])+$')",message="name must be a hostname of lowercase letters, digits, '-', '.' and variables ($NAME)"
	// +kubebuilder:validation:XValidation:rule="self.contains('$') || size(self) <= 63",message="name must be at most 63 characters: assisted-service rejects longer hostnames"
	Name string `json:"name,omitempty"`

	// kubeletExtraLabels are labels of the Node, each in the form key=value. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(l, l.matches('^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?=(([A-Za-z0-9_.-]|[$][A-Za-z_][A-Za-z0-9_]*|[$][{][A-Za-z_][A-Za-z0-9_]*[}]|\\x22)*)$'))",message="kubeletExtraLabels must have the form key=value; the value may contain letters, digits, '-', '_', '.' and variables ($NAME)"
	KubeletExtraLabels []string `json:"kubeletExtraLabels,omitempty"`

	// providerID of the Node, in the form scheme://path. When omitted, the infrastructure provider sets it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9-]+://[^\\\\s`\\x27\\\\\\\\]+$')",message="providerID must have the form scheme://path; variables ($NAME) are allowed"
	ProviderID string `json:"providerID,omitempty"`
}

// HostRequirements define the minimum hardware of a host.
// +kubebuilder:validation:MinProperties=1
type HostRequirements struct {
	// minCPUCores is the minimum number of CPU cores.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinCPUCores int32 `json:"minCPUCores,omitempty"`

	// minMemory is the minimum usable memory, such as 32Gi.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="type(self) == int || isQuantity(self)",message="minMemory must be a number of bytes or a quantity such as 32Gi"
	MinMemory *resource.Quantity `json:"minMemory,omitempty"`

	// minDiskSize is the minimum size of the installation disk, such as 120Gi. Without root device hints the disk that
	// assisted-service has chosen is used if it is large enough. Otherwise the provider chooses among the disks that
	// are large enough, in the same order as assisted-service.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="type(self) == int || isQuantity(self)",message="minDiskSize must be a number of bytes or a quantity such as 120Gi"
	MinDiskSize *resource.Quantity `json:"minDiskSize,omitempty"`

	// gpus are the GPUs that the host must have: each item is a minimum number of GPUs of one kind. They are compared
	// with the inventory of the Agent before the host is bound. The inspection of a BareMetalHost does not find GPUs. The
	// field needs an assisted-service from January 2026 or newer. An older one reports no GPUs, and no host is bound. 1
	// to 8.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	GPUs []GPURequirement `json:"gpus,omitempty"`
}

// GPURequirement is a minimum number of GPUs of one vendor. The vendor is required because an inventory lists the
// graphics controllers of BMCs as GPUs, too.
type GPURequirement struct {
	// minCount is the minimum number of GPUs.
	// +required
	// +kubebuilder:validation:Minimum=1
	MinCount int32 `json:"minCount,omitempty"`

	// vendorID is the PCI ID of the vendor: "10de" for NVIDIA, "1002" for AMD, "8086" for Intel. Quote the digits in
	// YAML.
	// +required
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{4}$')",message="vendorID must be four hexadecimal digits in lowercase, such as 10de"
	VendorID string `json:"vendorID,omitempty"`

	// deviceID is the PCI ID of the model, such as "2330". When omitted, all GPUs of the vendor count.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{4}$')",message="deviceID must be four hexadecimal digits in lowercase, such as 2330"
	DeviceID string `json:"deviceID,omitempty"`
}

// RootDeviceHints select a disk of a host. The hints have the meaning of the root device hints of a BareMetalHost.
// +kubebuilder:validation:MinProperties=1
type RootDeviceHints struct {
	// deviceName is the path of the disk, such as /dev/sda, or a link to it in /dev/disk/by-path or /dev/disk/by-id.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^/dev/[^\\\\s]+$')",message="deviceName must be a path in /dev, such as /dev/sda"
	DeviceName string `json:"deviceName,omitempty"`

	// hctl is the SCSI address of the disk: host, channel, target and LUN, such as 0:0:0:0.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+:[0-9]+:[0-9]+:[0-9]+$')",message="hctl must be host, channel, target and LUN, such as 0:0:0:0"
	HCTL string `json:"hctl,omitempty"`

	// model is the model of the disk or a substring of it. Case does not matter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Model string `json:"model,omitempty"`

	// vendor is the vendor of the disk or a substring of it. Case does not matter.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Vendor string `json:"vendor,omitempty"`

	// serialNumber is the complete serial number of the disk.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	SerialNumber string `json:"serialNumber,omitempty"`

	// minSizeGigabytes is the minimum size of the disk. Ironic counts in GiB, assisted-service in GB (10^9 bytes). If
	// the size of a matching disk is between both readings, the host is neither bound nor approved.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSizeGigabytes int32 `json:"minSizeGigabytes,omitempty"`

	// wwn is the World Wide Name of the disk, such as 0x5000c500a0b1c2d3.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	WWN string `json:"wwn,omitempty"`

	// wwnWithExtension is the World Wide Name of the disk including the vendor extension.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	WWNWithExtension string `json:"wwnWithExtension,omitempty"`

	// wwnVendorExtension is the vendor extension of the World Wide Name alone.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	WWNVendorExtension string `json:"wwnVendorExtension,omitempty"`

	// rotational is true for spinning disks, and false for all other disks.
	// +optional
	Rotational *bool `json:"rotational,omitempty"`
}

// OpenshiftAssistedConfigStatus is the observed state of the host.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigStatus struct {
	// conditions report the progress of the host, its blocker and the action that resolves it. The types are listed in
	// docs/conditions.md.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization contains the fields of the Cluster API contract that report whether the bootstrap data exists.
	// +optional
	Initialization OpenshiftAssistedConfigInitializationStatus `json:"initialization,omitempty,omitzero"`

	// dataSecretName is the name of the Secret that contains the bootstrap data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	DataSecretName string `json:"dataSecretName,omitempty"`

	// bootMode is the boot mode in use. It does not change once the bootstrap data exists.
	// +optional
	BootMode BootMode `json:"bootMode,omitempty"`

	// hostName is the name of the BareMetalHost of the Machine. Without a BareMetalHost it is the hostname of the
	// host. Omitted while the host is unknown.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	HostName string `json:"hostName,omitempty"`

	// nodeName is the name of the Node of the Machine, as Cluster API found it. Omitted before the host has joined the
	// cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// agentRef names the Agent that is identified as the host of this Machine.
	// +optional
	AgentRef *corev1.LocalObjectReference `json:"agentRef,omitempty"`

	// installationProgress is the current stage of the installation of the host, in the words of assisted-service. A
	// stage that takes only seconds may be skipped.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	InstallationProgress string `json:"installationProgress,omitempty"`

	// installationStageStartTime is the time at which the host entered this stage, as assisted-service reports it.
	// +optional
	InstallationStageStartTime *metav1.Time `json:"installationStageStartTime,omitempty"`

	// installationPercentage is the share of stages that the host has reached, from 0 to 100, as assisted-service
	// reports it. It changes only with the stage.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	InstallationPercentage *int32 `json:"installationPercentage,omitempty"`

	// observedGeneration is the generation of the spec from which the status was computed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// OpenshiftAssistedConfigInitializationStatus contains fields that stay true once they are true.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigInitializationStatus struct {
	// dataSecretCreated is true once the boot image is in place and the Secret with the bootstrap data exists.
	// +optional
	DataSecretCreated *bool `json:"dataSecretCreated,omitempty"`
}

// OpenshiftAssistedConfig is the bootstrap configuration of one Machine. It brings one host from power-on to an
// approved Agent.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedconfigs,scope=Namespaced,categories=cluster-api,shortName=oac;oacs
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].status",description="True once the host is installed"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type=='Ready')].reason",description="Reason of the condition Ready"
// +kubebuilder:printcolumn:name="Host",type="string",JSONPath=".status.hostName",description="BareMetalHost, or hostname without a BareMetalHost"
// +kubebuilder:printcolumn:name="Node",type="string",JSONPath=".status.nodeName",description="Node of the host"
// +kubebuilder:printcolumn:name="Stage",type="string",JSONPath=".status.installationProgress",description="Installation stage"
// +kubebuilder:printcolumn:name="Stage Age",type="date",JSONPath=".status.installationStageStartTime",description="Time that the host has been in this stage"
// +kubebuilder:printcolumn:name="Agent",type="string",priority=10,JSONPath=".status.agentRef.name",description="Agent of the host"
// +kubebuilder:printcolumn:name="Percentage",type="integer",priority=10,JSONPath=".status.installationPercentage",description="Share of stages that the host has reached"
// +kubebuilder:printcolumn:name="Boot Mode",type="string",priority=10,JSONPath=".status.bootMode",description="Boot mode in force"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:validation:XValidation:rule="!oldSelf.?status.initialization.dataSecretCreated.orValue(false) || (has(self.spec) && has(self.spec.bootMode) ? self.spec.bootMode : 'unset') == (has(oldSelf.spec) && has(oldSelf.spec.bootMode) ? oldSelf.spec.bootMode : 'unset')",message="spec.bootMode is immutable once the bootstrap data exists: to use another boot mode, delete the Machine, which wipes its host"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'HostApproved' && c.status == 'True')) || (has(self.spec) && has(self.spec.machineConfigPool) ? self.spec.machineConfigPool : 'worker') == (has(oldSelf.spec) && has(oldSelf.spec.machineConfigPool) ? oldSelf.spec.machineConfigPool : 'worker')",message="spec.machineConfigPool is immutable once the host is approved: change the pool of its Node in the cluster. Before the installation, add the pool to the manifests, or delete the Machine, which wipes its host"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.role) ? self.spec.role : 'none') == (has(oldSelf.spec) && has(oldSelf.spec.role) ? oldSelf.spec.role : 'none')",message="spec.role is immutable: the control plane provider sets it when it creates the config of an arbiter. If the role is wrong, delete the Machine, which wipes its host: its replacement gets the missing role"
type OpenshiftAssistedConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec defines how the host is discovered and how its Node is configured.
	// +optional
	Spec OpenshiftAssistedConfigSpec `json:"spec,omitempty,omitzero"`
	// status is the observed state of the host.
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

// OpenshiftAssistedConfigTemplateSpec contains the template.
type OpenshiftAssistedConfigTemplateSpec struct {
	// template is the template of each OpenshiftAssistedConfig that is created.
	// +required
	Template OpenshiftAssistedConfigTemplateResource `json:"template,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplateResource is the template of each OpenshiftAssistedConfig that is created.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedConfigTemplateResource struct {
	// metadata contains the labels and annotations of the created objects.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec is the spec of the created objects.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role is for control-plane Machines: remove it, and set spec.arbiter of the OpenshiftAssistedControlPlane to make one of them an arbiter"
	Spec OpenshiftAssistedConfigSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedConfigTemplate is the template from which a MachineDeployment or MachineSet creates
// OpenshiftAssistedConfigs.
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

	// spec contains the template.
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
