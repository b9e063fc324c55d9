package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

const (
	// OpenshiftAssistedControlPlaneFinalizer blocks the deletion of an OpenshiftAssistedControlPlane until its Machines
	// and the registration of the cluster in assisted-service are deleted.
	OpenshiftAssistedControlPlaneFinalizer = "openshiftassistedcontrolplane.controlplane.cluster.x-k8s.io/deprovision"

	// EtcdMemberHookAnnotation of a control-plane Machine that is being deleted blocks the deprovisioning of its host
	// while the host is a member of etcd. All control-plane Machines of installed clusters have it.
	EtcdMemberHookAnnotation = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/openshift-etcd-member"

	// DeleteProtectionAnnotation marks the infrastructure machine of a control-plane Machine while the Machine has the
	// hook. An admission policy of the bootstrap provider rejects the deletion of a marked infrastructure machine. The
	// deletion would switch off the host in spite of the hook.
	DeleteProtectionAnnotation = "controlplane.cluster.x-k8s.io/delete-protection"

	// ReleasedHostsAnnotation of a control plane records the control-plane hosts that have left etcd: Machine, Node,
	// identity and members. A record is removed when the remains of the host are cleaned up.
	ReleasedHostsAnnotation = "controlplane.cluster.x-k8s.io/released-hosts"

	// ReleaseImageRepositoryOverrideAnnotation contains the repository (registry/path, without tag) of the release
	// image of this control plane: <repository>:<version>-<architecture>. It replaces the default repository.
	ReleaseImageRepositoryOverrideAnnotation = "cluster.x-k8s.io/release-image-repository-override"

	// RefreshAnnotation is the time, in RFC 3339, at which the control plane provider touched an AgentClusterInstall
	// whose state had not changed for minutes. assisted-service publishes the state of a cluster again when its
	// AgentClusterInstall changes.
	RefreshAnnotation = "controlplane.cluster.x-k8s.io/refresh-requested"

	// PassOnAnnotation lists labels and annotations, separated by commas, that the provider copies from the control
	// plane to its ClusterDeployment and AgentClusterInstall. Labels and annotations that hive, assisted-service, the
	// siteconfig operator and Advanced Cluster Management read are always copied.
	PassOnAnnotation = "controlplane.cluster.x-k8s.io/pass-on"

	// InstallConfigOverrideAnnotation contains a JSON object that is merged into the install-config, like
	// spec.config.installConfigOverride. For the same key the field takes precedence.
	InstallConfigOverrideAnnotation = "controlplane.cluster.x-k8s.io/install-config-override"
)

// OpenshiftAssistedControlPlaneSpec defines the desired control plane.
// +kubebuilder:validation:XValidation:rule="!has(self.arbiter) || self.?replicas.orValue(1) == 3",message="with an arbiter replicas must be 3: two masters and the arbiter"
// +kubebuilder:validation:XValidation:rule="!has(self.arbiter) || (size(self.config.?apiVIPs.orValue([])) > 0 && size(self.config.?ingressVIPs.orValue([])) > 0)",message="a cluster with an arbiter needs platform baremetal: set config.apiVIPs and config.ingressVIPs"
// +kubebuilder:validation:XValidation:rule="!has(self.arbiter) || self.distributionVersion.matches('^v?([5-9]|[1-9][0-9]+|4[.]([2-9][0-9]|[1-9][0-9][0-9]+))[.]')",message="an arbiter needs distributionVersion 4.20 or newer: 4.19 has arbiters only as a technology preview, which cannot be upgraded, and older releases have none"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || self.?replicas.orValue(1) == 2",message="with fencing replicas must be 2: each of the two nodes can power off the other"
// +kubebuilder:validation:XValidation:rule="has(self.fencing) || self.?replicas.orValue(1) != 2",message="a cluster of two nodes has no etcd quorum without fencing: set fencing, or set replicas to 3 with an arbiter"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || !has(self.config.externalPlatform)",message="a cluster with fencing needs platform baremetal or none: remove config.externalPlatform"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || self.distributionVersion.matches('^v?([5-9]|[1-9][0-9]+|4[.]([2-9][0-9]|[1-9][0-9][0-9]+))[.]')",message="fencing needs distributionVersion 4.20 or newer: older releases have no clusters of two nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas in [1, 2, 3, 4, 5]",message="replicas must be 1 (single node), 2 (with fencing), 3, 4 or 5"
// +kubebuilder:validation:XValidation:rule="self.?replicas.orValue(1) != 1 || (size(self.config.?apiVIPs.orValue([])) == 0 && size(self.config.?ingressVIPs.orValue([])) == 0)",message="a single-node cluster (replicas: 1) has no VIPs: remove config.apiVIPs and config.ingressVIPs, or set replicas to 3, 4 or 5"
type OpenshiftAssistedControlPlaneSpec struct {
	// replicas is the number of control-plane Machines: 1 (single node), 2 (with fencing), 3, 4 or 5. Default: 1. It
	// cannot change during the installation. After that it cannot change from or to 1.
	// +optional
	// +kubebuilder:default=1
	Replicas *int32 `json:"replicas,omitempty"`

	// distributionVersion is the OpenShift or OKD release of the whole cluster. Examples: 4.19.10, v4.19.10,
	// 4.19.0-okd-scos.5. A newer release upgrades an installed cluster in place. Downgrades are not supported.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="distributionVersion must be a full release such as 4.19.10"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^v?[0-3][.]')",message="distributionVersion must be an OpenShift or OKD release such as 4.19.10: the Kubernetes version belongs into version"
	DistributionVersion string `json:"distributionVersion,omitempty"`

	// version is the Kubernetes version of the release, exactly as the kubelets report it: v1.32.5. The kubelets of
	// releases before 4.17 report a hash, too: v1.29.6+aba1e8d. A topology of a Cluster sets version. Otherwise omit it.
	// While version is not the Kubernetes version of distributionVersion, the cluster is neither installed nor upgraded.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?[0-3][.]') || !self.matches('^v?[0-9]+[.]')",message="is an OpenShift release: set distributionVersion",messageExpression="'version ' + self + ' is an OpenShift release: set distributionVersion'"
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^v?1[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)([.](0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?([+][0-9A-Za-z-]+([.][0-9A-Za-z-]+)*)?$')",message="version must be a Kubernetes version such as v1.32.5"
	Version string `json:"version,omitempty"`

	// machineTemplate is the template of the control-plane Machines.
	// +required
	MachineTemplate OpenshiftAssistedControlPlaneMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// arbiter makes one of the three control-plane Machines an arbiter: a member of etcd on a small host that runs few
	// other components. The other two Machines are masters. Set it at creation only, with replicas 3 and release 4.20
	// or newer. It cannot be removed. Its contents can change later.
	// +optional
	Arbiter *ArbiterSpec `json:"arbiter,omitempty"`

	// fencing makes a cluster of two nodes without other hosts. Before a node continues alone, it powers off the other
	// node through the BMC of that node. Set it at creation only, with replicas 2 and release 4.20 or newer. It cannot
	// be removed. The BMCs of the hosts must support Redfish. In OpenShift 4.20 and 4.21 fencing is a technology
	// preview, which cannot be upgraded.
	// +optional
	Fencing *FencingSpec `json:"fencing,omitempty"`

	// machineNaming defines the names of the Machines. When omitted, a name is <control plane>-<5 characters>.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of the OpenshiftAssistedConfig of each control-plane Machine.
	// machineConfigPool and role are not allowed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPool)",message="machineConfigPool is for workers: remove it, hosts of the control plane belong to the pool master"
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role is set by the control plane provider: remove it, and set spec.arbiter to make one of the Machines an arbiter"
	OpenshiftAssistedConfigSpec bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty,omitzero"`

	// remediation limits how often unhealthy Machines are replaced. A MachineHealthCheck detects unhealthy Machines.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// upgrade defines how an installed cluster is upgraded to another release.
	// +optional
	Upgrade UpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// kubeconfig defines additions to the published kubeconfig (Secret <cluster>-kubeconfig).
	// +optional
	Kubeconfig KubeconfigSpec `json:"kubeconfig,omitempty,omitzero"`

	// config is the configuration of the installation.
	// +required
	Config InstallationConfig `json:"config,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneMachineTemplate is the template of the control-plane Machines.
type OpenshiftAssistedControlPlaneMachineTemplate struct {
	// metadata contains labels and annotations of the Machines, their infra machines and OpenshiftAssistedConfigs. A
	// change updates existing objects in place.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the Machines. A change updates existing Machines in place, except a change of
	// infrastructureRef.
	// +required
	Spec OpenshiftAssistedControlPlaneMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneMachineTemplateSpec is the spec of the Machines.
type OpenshiftAssistedControlPlaneMachineTemplateSpec struct {
	// infrastructureRef names the template of the infra machines in the same namespace, such as a
	// Metal3MachineTemplate.
	// +required
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	OpenshiftAssistedControlPlaneMachineSettings `json:",inline"`
}

// OpenshiftAssistedControlPlaneMachineSettings are the fields of a Machine that are updated in place.
type OpenshiftAssistedControlPlaneMachineSettings struct {
	// readinessGates are additional conditions that must be True before a Machine is Ready. 1 to 32.
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion contains the timeouts of the deletion of a Machine.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints of the Node. Cluster API applies them if its feature gate MachineTaintPropagation is enabled. 1 to 64.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// ArbiterSpec is the template of the Machine of an arbiter. An omitted field has the value of the other control-plane
// Machines.
type ArbiterSpec struct {
	// machineTemplate is the template of the Machine.
	// +optional
	MachineTemplate ArbiterMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of the OpenshiftAssistedConfig of the Machine. machineConfigPool and role
	// are not allowed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPool)",message="machineConfigPool is for workers: remove it, the host of an arbiter belongs to the pool arbiter"
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role of an arbiter is set by the control plane provider: remove it"
	OpenshiftAssistedConfigSpec *bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty"`
}

// ArbiterMachineTemplate is the template of the Machine of an arbiter.
// +kubebuilder:validation:MinProperties=1
type ArbiterMachineTemplate struct {
	// metadata contains labels and annotations of the Machine, its infra machine and OpenshiftAssistedConfig. A change
	// updates existing objects in place.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the spec of the Machine. A change updates the existing Machine in place, except a change of
	// infrastructureRef.
	// +optional
	Spec ArbiterMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// ArbiterMachineTemplateSpec is the spec of the Machine of an arbiter.
// +kubebuilder:validation:MinProperties=1
type ArbiterMachineTemplateSpec struct {
	// infrastructureRef names the template of the infra machine in the same namespace.
	// +optional
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	OpenshiftAssistedControlPlaneMachineSettings `json:",inline"`
}

// FencingSpec defines how the two nodes of a cluster fence each other.
type FencingSpec struct {
	// credentialsFrom is the source of the addresses and credentials with which the nodes control each other's BMCs.
	// BareMetalHosts: the address of the BareMetalHost of each Machine. The credentials come from the Secret in its
	// spec.bmc.credentialsName, or from the Secret in its annotation
	// bmac.agent-install.openshift.io/fencing-credentials-secret-name.
	//
	// The credentials are copied into the cluster: every administrator of the cluster can power its hosts off and on.
	// +required
	CredentialsFrom FencingCredentialsSource `json:"credentialsFrom,omitempty"`
}

// FencingCredentialsSource is the source of the credentials of BMCs.
// +kubebuilder:validation:Enum=BareMetalHosts
type FencingCredentialsSource string

// FencingCredentialsFromBareMetalHosts reads the credentials of the BareMetalHosts of the Machines.
const FencingCredentialsFromBareMetalHosts FencingCredentialsSource = "BareMetalHosts"

// MachineDeletionSpec contains the timeouts of the deletion of a Machine, in seconds. 0 or omitted: no limit.
// +kubebuilder:validation:MinProperties=1
type MachineDeletionSpec struct {
	// nodeDrainTimeoutSeconds is the time, in seconds, after which Cluster API stops to drain the Node and continues
	// the deletion. 0 or omitted: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`
	// nodeVolumeDetachTimeoutSeconds is the time, in seconds, after which Cluster API stops to wait for the detachment
	// of volumes and continues the deletion. 0 or omitted: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`
	// nodeDeletionTimeoutSeconds is the time, in seconds, for which Cluster API tries to delete the Node. When omitted,
	// Cluster API uses 10. 0: no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineNamingSpec defines the names of the Machines.
// +kubebuilder:validation:MinProperties=1
type MachineNamingSpec struct {
	// template is a Go template that must contain the variable .random: '{{ .controlPlane.name }}-{{ .random }}'. Other
	// variables are .cluster.name and .controlPlane.name (also .kubeadmControlPlane.name, as in KubeadmControlPlane).
	// Actions and functions are not allowed. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('[{][{] *[.]random *[}][}]')",message="template must contain {{ .random }}"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^{}]|[{][{]-? *[.](random|(cluster|controlPlane|kubeadmControlPlane)[.]name) *-?[}][}])*$')",message="template may contain text and the variables {{ .cluster.name }}, {{ .controlPlane.name }} and {{ .random }}, and nothing else"
	Template string `json:"template,omitempty"`
}

// RemediationSpec limits how often unhealthy Machines are replaced. The fields are those of KubeadmControlPlane.
// +kubebuilder:validation:MinProperties=1
type RemediationSpec struct {
	// maxRetry is the maximum number of retries: replacements of a Machine that replaced an unhealthy Machine and
	// became unhealthy within minHealthyPeriodSeconds. When omitted, there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`
	// retryPeriodSeconds is the minimum time, in seconds, between two retries. Default: 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryPeriodSeconds *int32 `json:"retryPeriodSeconds,omitempty"`
	// minHealthyPeriodSeconds is the time, in seconds, after a replacement in which a failure of the new Machine counts
	// as a retry. The time includes the installation of the new host. Default: 3600.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}

// UpgradeSpec defines how an installed cluster is upgraded to another release.
// +kubebuilder:validation:MinProperties=1
type UpgradeSpec struct {
	// channel is the channel of the update graph in which the cluster searches for the release, such as stable-4.20.
	// The provider sets the channel for an upgrade, not between upgrades. When omitted, the channel of the cluster does
	// not change.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Channel string `json:"channel,omitempty"`

	// acknowledgements list the checks that an administrator has completed before an upgrade to another minor version.
	// Each is a key of ConfigMap openshift-config-managed/admin-gates of the cluster, such as
	// ack-4.19-kube-1.33-api-removals-in-4.20. The condition MachinesUpToDate reports the acknowledgements that the
	// cluster requires.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Acknowledgements []string `json:"acknowledgements,omitempty"`

	// acceptedRisks list the names of risks of updates that the update graph does not recommend for this cluster. The
	// names are in status.conditionalUpdates of its ClusterVersion. An update with a risk that is not listed is not
	// requested. The condition MachinesUpToDate reports the risks. If the ClusterVersion records accepted risks
	// (feature gate ClusterUpdateAcceptRisks), the request contains those of the release.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	AcceptedRisks []string `json:"acceptedRisks,omitempty"`

	// toleratedOperators list ClusterOperators that may be degraded or unavailable when an upgrade is requested,
	// because the new release fixes them. They apply to each upgrade until they are removed. The condition
	// MachinesUpToDate and the Event UpgradeRequested report them. ClusterOperators etcd, kube-apiserver and
	// machine-config are not allowed, because they restart the control plane during an upgrade.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(o, o.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$'))",message="toleratedOperators must contain names of ClusterOperators in lowercase, such as image-registry"
	// +kubebuilder:validation:XValidation:rule="!self.exists(o, o in ['etcd', 'kube-apiserver', 'machine-config'])",message="etcd, kube-apiserver and machine-config cannot be tolerated, because they restart the control plane during an upgrade: repair them first"
	ToleratedOperators []string `json:"toleratedOperators,omitempty"`

	// waivePreconditionsAndSignaturesFor is a release, with or without leading v. For this release the cluster checks
	// neither its preconditions nor the signature of the release image (force). The field applies only while
	// distributionVersion has the same value. The checks of the provider still apply. A forced upgrade may fail, and cannot be reverted.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=128
	WaivePreconditionsAndSignaturesFor string `json:"waivePreconditionsAndSignaturesFor,omitempty"`

	// pauseWorkerPools is DuringChain to let the provider pause the MachineConfigPools of workers during a chain of upgrades. In
	// a chain, one change upgrades the topology of the Cluster over two minor versions (ClusterClass spec.kubernetesVersions).
	// The workers then restart once. The provider pauses updated pools before it requests the first release. It resumes them
	// when the control plane has completed the last release, the change is reverted, or the field is removed. Pools that the
	// user pauses stay paused. Never, the default, requires that the user pauses the pools.
	// +optional
	PauseWorkerPools WorkerPoolPausePolicy `json:"pauseWorkerPools,omitempty"`
}

// WorkerPoolPausePolicy is when the provider pauses the MachineConfigPools of workers.
// +kubebuilder:validation:Enum=Never;DuringChain
type WorkerPoolPausePolicy string

const (
	// NeverPauseWorkerPools leaves the pools to the user.
	NeverPauseWorkerPools WorkerPoolPausePolicy = "Never"
	// PauseWorkerPoolsDuringChain pauses the pools while a topology is upgraded over two minor versions.
	PauseWorkerPoolsDuringChain WorkerPoolPausePolicy = "DuringChain"
)

// KubeconfigSpec defines additions to the published kubeconfig.
// +kubebuilder:validation:MinProperties=1
type KubeconfigSpec struct {
	// additionalTrustBundle contains at most 16 certificate authorities (PEM) that the kubeconfig trusts in addition to
	// the authorities of the cluster. Set the authorities of custom serving certificates (namedCertificates) or of a
	// load balancer. The field can change at any time.
	//
	// An authority that is removed from the field leaves the kubeconfig after seven connections to the cluster, one
	// hour apart. In none of them an API server may need the authority. An authority that the kubeconfig had before, or
	// that the cluster reports, stays. A kubeconfig without any authority gets none: its clients use the authorities of
	// their system.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:space:]]*(-----BEGIN CERTIFICATE-----[[:space:]][A-Za-z0-9+/=[:space:]]+-----END CERTIFICATE-----[[:space:]]*)+$')",message="additionalTrustBundle must contain PEM certificates (-----BEGIN CERTIFICATE-----) and nothing else: remove keys and comments"
	// +kubebuilder:validation:XValidation:rule="size(self.split('-----BEGIN CERTIFICATE-----')) <= 17",message="additionalTrustBundle must contain at most 16 certificates"
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`
}

// InstallationConfig is the configuration of the installation. The provider reads it until the installation starts. A
// later change of a field that cannot change in an installed cluster is rejected.
// +kubebuilder:validation:XValidation:rule="self.baseDomain == oldSelf.baseDomain",message="baseDomain is immutable"
// +kubebuilder:validation:XValidation:rule="size(self.?apiVIPs.orValue([])) == size(self.?ingressVIPs.orValue([]))",message="apiVIPs and ingressVIPs must have the same number of addresses: one each, or two each for dual-stack"
// +kubebuilder:validation:XValidation:rule="!has(self.machineNetwork) || !has(self.apiVIPs) || self.apiVIPs.all(v, !isIP(v) || self.machineNetwork.exists(n, isCIDR(n) && cidr(n).containsIP(ip(v))))",message="each address of apiVIPs must be in a network of machineNetwork, also with a user-managed load balancer"
// +kubebuilder:validation:XValidation:rule="!has(self.machineNetwork) || !has(self.ingressVIPs) || self.ingressVIPs.all(v, !isIP(v) || self.machineNetwork.exists(n, isCIDR(n) && cidr(n).containsIP(ip(v))))",message="each address of ingressVIPs must be in a network of machineNetwork, also with a user-managed load balancer"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') == 'UserManaged' || !has(self.apiVIPs) || !has(self.ingressVIPs) || !self.apiVIPs.exists(a, isIP(a) && self.ingressVIPs.exists(i, isIP(i) && ip(a) == ip(i)))",message="apiVIPs and ingressVIPs must be different addresses: change one of them, or set loadBalancer.type to UserManaged"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') != 'UserManaged' || (has(self.apiVIPs) && size(self.apiVIPs) > 0 && has(self.machineNetwork) && size(self.machineNetwork) > 0)",message="a user-managed load balancer needs its addresses in apiVIPs and ingressVIPs, and its network in machineNetwork: set these fields"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') != 'UserManaged' || (size(self.?apiVIPs.orValue([])) < 2 && (!has(self.machineNetwork) || !self.machineNetwork.all(n, isCIDR(n)) || self.machineNetwork.all(n, cidr(n).ip().family() == cidr(self.machineNetwork[0]).ip().family())))",message="a cluster with a user-managed load balancer cannot be dual-stack: set apiVIPs, ingressVIPs and machineNetwork to addresses of one family"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') == 'UserManaged' || !has(self.machineNetwork) || size(self.machineNetwork) < 2 || !self.machineNetwork.all(n, isCIDR(n)) || self.machineNetwork.exists(n, cidr(n).ip().family() != cidr(self.machineNetwork[0]).ip().family())",message="several networks of one address family in machineNetwork need a user-managed load balancer: keep one network, or set loadBalancer.type to UserManaged"
// +kubebuilder:validation:XValidation:rule="!has(self.machineNetwork) || size(self.machineNetwork) < 3 || !self.machineNetwork.all(n, isCIDR(n)) || self.machineNetwork.all(n, cidr(n).ip().family() == cidr(self.machineNetwork[0]).ip().family())",message="machineNetwork of a dual-stack cluster must be one IPv4 and one IPv6 network"
// +kubebuilder:validation:XValidation:rule="size(self.?apiVIPs.orValue([])) != 2 || has(self.machineNetwork)",message="a dual-stack cluster (two apiVIPs) needs machineNetwork: set one IPv4 and one IPv6 network"
// +kubebuilder:validation:XValidation:rule="!(has(self.releaseImage) && has(self.clusterImageSetRef))",message="releaseImage and clusterImageSetRef exclude each other: remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPlatform) || (size(self.?apiVIPs.orValue([])) == 0 && size(self.?ingressVIPs.orValue([])) == 0)",message="a cluster on an external platform has no VIPs: remove apiVIPs and ingressVIPs, or remove externalPlatform"
type InstallationConfig struct {
	// baseDomain is the DNS domain of the cluster, such as example.com. The API of the cluster is
	// api.<clusterName>.<baseDomain>. The field is immutable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=184
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$')",message="baseDomain must be a DNS domain such as example.com: labels of lowercase letters, digits and '-', each at most 63 characters"
	// +kubebuilder:validation:XValidation:rule="self.matches('(^|[.])[a-z0-9-]{2,}$') && !self.matches('^[0-9]+([.][0-9]+){3}$')",message="baseDomain must end with a label of two or more characters, and cannot be an IP address"
	BaseDomain string `json:"baseDomain,omitempty"`

	// clusterName is the first label of the DNS name of the cluster. It can change until the installation starts. When
	// omitted, it is the name of the Cluster, which then must have at most 54 characters and, on platforms other than
	// none, no dot.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=54
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",message="clusterName must be one DNS label such as lab: lowercase letters, digits and '-', without dot"
	ClusterName string `json:"clusterName,omitempty"`

	// releaseImage is the release image of distributionVersion by digest: registry/path@sha256:... With it the provider
	// queries a registry only for the Kubernetes version of the release, and only if version is set. If both
	// releaseImage and clusterImageSetRef are omitted, the provider resolves the image of distributionVersion once. An
	// upgrade then uses the image that the update graph of the cluster offers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\s@]+@sha256:[a-f0-9]{64}$')",message="releaseImage must name the image by digest: registry/path@sha256: and 64 hexadecimal digits in lowercase"
	ReleaseImage string `json:"releaseImage,omitempty"`

	// clusterImageSetRef names an existing ClusterImageSet of the release. With it the provider queries no registry. If
	// the update graph of the cluster does not offer the release of an upgrade, the ClusterImageSet must name the image
	// by digest.
	// +optional
	ClusterImageSetRef *ClusterImageSetReference `json:"clusterImageSetRef,omitempty"`

	// pullSecretRef names a Secret of type kubernetes.io/dockerconfigjson in the same namespace. When omitted, a
	// placeholder is used: OKD needs no pull secret.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`

	// apiVIPs are the virtual IP addresses of the API of the cluster: one, or two (IPv4 and IPv6) for dual-stack. With
	// apiVIPs and ingressVIPs the platform is baremetal, without them none. Immutable once the installation has
	// started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="self.all(v, isIP(v))",message="apiVIPs must be IP addresses, such as 192.168.111.5"
	// +kubebuilder:validation:XValidation:rule="size(self) != 2 || !isIP(self[0]) || !isIP(self[1]) || ip(self[0]).family() != ip(self[1]).family()",message="two apiVIPs must be one IPv4 and one IPv6 address"
	APIVIPs []string `json:"apiVIPs,omitempty"`

	// ingressVIPs are the virtual IP addresses of the ingress of the cluster: one, or two (IPv4 and IPv6) for
	// dual-stack. Immutable once the installation has started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="self.all(v, isIP(v))",message="ingressVIPs must be IP addresses, such as 192.168.111.6"
	// +kubebuilder:validation:XValidation:rule="size(self) != 2 || !isIP(self[0]) || !isIP(self[1]) || ip(self[0]).family() != ip(self[1]).family()",message="two ingressVIPs must be one IPv4 and one IPv6 address"
	IngressVIPs []string `json:"ingressVIPs,omitempty"`

	// machineNetwork lists the networks of the hosts as CIDRs, such as 192.168.111.0/24 for one network. A dual-stack
	// cluster needs one IPv4 and one IPv6 network, in the order of its VIPs. A user-managed load balancer allows
	// several networks of one address family: include the network of the load balancer. When omitted, assisted-service
	// derives the network from the addresses of the hosts. Immutable once the installation has started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(n, isCIDR(n))",message="machineNetwork must contain CIDRs such as 192.168.111.0/24"
	// +kubebuilder:validation:XValidation:rule="self.all(n, !isCIDR(n) || cidr(n) == cidr(n).masked())",message="machineNetwork must contain network addresses without host bits: 192.168.111.0/24, not 192.168.111.20/24"
	MachineNetwork []string `json:"machineNetwork,omitempty"`

	// networkType is the network plug-in: OVNKubernetes, or a third-party plug-in whose manifests are in
	// manifestsConfigMapRefs. When omitted, the release selects the plug-in. Immutable once the installation has
	// started.
	// +optional
	// +kubebuilder:validation:Enum=OpenShiftSDN;OVNKubernetes;Calico;Cilium;CiscoACI;None
	NetworkType string `json:"networkType,omitempty"`

	// hostPrefix is the prefix length of the network that each Node gets from the Pod network (spec.clusterNetwork of
	// the Cluster). Immutable once the installation has started.
	// +optional
	HostPrefix *HostPrefix `json:"hostPrefix,omitempty"`

	// externalPlatform sets the platform to external, instead of none. manifestsConfigMapRefs must contain the
	// manifests of its provider. Not allowed with VIPs. Immutable once the installation has started.
	// +optional
	ExternalPlatform *ExternalPlatform `json:"externalPlatform,omitempty"`

	// hyperthreading of the hosts. When omitted, it is enabled. Immutable once the installation has started.
	// +optional
	Hyperthreading *Hyperthreading `json:"hyperthreading,omitempty"`

	// loadBalancer defines which load balancer serves API and ingress. When omitted, the cluster manages it. Immutable
	// once the installation has started.
	// +optional
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`

	// proxy of the installed cluster. Immutable once the installation has started: change it in the cluster instead.
	// +optional
	Proxy *bootstrapv1.Proxy `json:"proxy,omitempty"`

	// ntpSources are host names or IP addresses of NTP servers of the installed hosts. They replace the default pool of
	// assisted-service. Servers that DHCP announces stay in use, and so do NTP sources that any host reports during the
	// discovery. To exclude other servers, also set ntpSources of each openshiftAssistedConfigSpec, and let DHCP announce no
	// NTP servers. 1 to 16. The field needs an assisted-service from August 2026 or newer. With an older one no cluster is
	// registered, and the condition Installed reports the cause. Immutable once the installation has started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(n, n.matches('^[A-Za-z0-9.:-]+$'))",message="ntpSources must contain hostnames or IP addresses, such as ntp.example.com"
	NTPSources []string `json:"ntpSources,omitempty"`

	// sshAuthorizedKey is the public SSH key that gives access to the installed hosts as user core. Immutable once the
	// installation has started.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`

	// mastersSchedulable allows workloads on the control-plane Nodes. In clusters without workers this is always
	// allowed. Immutable once the installation has started.
	// +optional
	MastersSchedulable *bool `json:"mastersSchedulable,omitempty"`

	// ignoredValidations are validations of assisted-service that do not block the installation although they fail. Red
	// Hat does not support such a cluster. The condition ValidationsEnforced names the ignored validations, and exists as
	// long as the cluster. A list replaces the list that assisted-service has for all clusters
	// (DISABLED_CLUSTER_VALIDATIONS, DISABLED_HOST_VALIDATIONS). Validations of the replaced list block the installation
	// again, unless the field names them. The field needs an assisted-service from April 2026 or newer: an older one ignores
	// the field. Immutable once the installation has started.
	// +optional
	IgnoredValidations *IgnoredValidations `json:"ignoredValidations,omitempty"`

	// holdInstallation blocks the start of the installation when everything is ready. Set it to false to start the
	// installation.
	// +optional
	HoldInstallation *bool `json:"holdInstallation,omitempty"`

	// manifestsConfigMapRefs name ConfigMaps in the same namespace. Each key is an additional manifest of the
	// installation. At most 64. Immutable once the installation has started.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ManifestsConfigMapRefs []corev1.LocalObjectReference `json:"manifestsConfigMapRefs,omitempty"`

	// imageRegistryRef names a ConfigMap in the same namespace with the registry mirrors of the hosts and of the
	// installed cluster. Its keys are registries.conf and, optionally, ca-bundle.crt. The manager searches for the
	// release image in the same mirrors first. Immutable once the installation has started.
	// +optional
	ImageRegistryRef *corev1.LocalObjectReference `json:"imageRegistryRef,omitempty"`

	// diskEncryption encrypts the installation disks. Immutable once the installation has started.
	// +optional
	DiskEncryption *DiskEncryption `json:"diskEncryption,omitempty"`

	// capabilities are the optional components of the installed cluster. With a user-managed load balancer,
	// capabilities and installConfigOverride need an assisted-service from April 2026 or newer. Older ones reject both
	// with "has no bootstrap host". Immutable once the installation has started.
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// installConfigOverride is a JSON object that is merged into the install-config. It takes precedence over other
	// fields. Immutable once the installation has started.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || (self.startsWith('{') && self.endsWith('}'))",message="installConfigOverride must be a JSON object"
	InstallConfigOverride string `json:"installConfigOverride,omitempty"`
}

// IgnoredValidations are the IDs of validations of assisted-service, as in status.validationsInfo of an
// AgentClusterInstall and of an Agent.
// +kubebuilder:validation:MinProperties=1
type IgnoredValidations struct {
	// cluster are validations of the cluster, such as ntp-server-configured. 1 to 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(v, v.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'))",message="ignoredValidations.cluster must contain IDs of validations, such as ntp-server-configured"
	// +kubebuilder:validation:XValidation:rule="!self.exists(v, v in ['api-vips-defined', 'ingress-vips-defined', 'all-hosts-are-ready-to-install', 'sufficient-masters-count', 'pull-secret-set'])",message="assisted-service cannot ignore api-vips-defined, ingress-vips-defined, all-hosts-are-ready-to-install, sufficient-masters-count and pull-secret-set: remove them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(v, v == 'all')",message="name each validation to ignore instead of all"
	Cluster []string `json:"cluster,omitempty"`

	// hosts are validations of each host of the cluster, such as has-cpu-cores-for-role. assisted-service cannot ignore
	// validations of a single host. 1 to 32.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(v, v.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'))",message="ignoredValidations.hosts must contain IDs of validations, such as has-cpu-cores-for-role"
	// +kubebuilder:validation:XValidation:rule="!self.exists(v, v in ['connected', 'has-inventory', 'inventory-not-fully-truncated', 'machine-cidr-defined', 'hostname-unique', 'hostname-valid'])",message="assisted-service cannot ignore connected, has-inventory, inventory-not-fully-truncated, machine-cidr-defined, hostname-unique and hostname-valid: remove them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(v, v in ['media-connected', 'has-min-valid-disks', 'has-min-cpu-cores', 'has-min-memory'])",message="media-connected, has-min-valid-disks, has-min-cpu-cores and has-min-memory must pass before a host is bound to the cluster, and cannot be ignored: remove them"
	// +kubebuilder:validation:XValidation:rule="!self.exists(v, v == 'all')",message="name each validation to ignore instead of all"
	Hosts []string `json:"hosts,omitempty"`
}

// ClusterImageSetReference names a ClusterImageSet.
type ClusterImageSetReference struct {
	// name of the ClusterImageSet, which is cluster-scoped.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// HostPrefix is the prefix length of the network that each Node gets from the Pod network.
// +kubebuilder:validation:MinProperties=1
type HostPrefix struct {
	// ipv4 is the prefix length in IPv4 networks. Default: 23 (512 addresses), or the complete network if it is
	// smaller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	IPv4 int32 `json:"ipv4,omitempty"`
	// ipv6 is the prefix length in IPv6 networks. Default: 64, or the complete network if it is smaller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	IPv6 int32 `json:"ipv6,omitempty"`
}

// ExternalPlatform is a platform whose provider is not part of OpenShift.
type ExternalPlatform struct {
	// name of the provider. OpenShift reports it and does not use it otherwise.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// cloudControllerManager is External if Nodes must wait for a cloud controller manager, which the manifests of the
	// installation contain. When omitted, the cluster has no cloud controller manager.
	// +optional
	// +kubebuilder:validation:Enum=External
	CloudControllerManager string `json:"cloudControllerManager,omitempty"`
}

// Hyperthreading defines on which hosts processors run two threads on each core.
// +kubebuilder:validation:MinProperties=1
type Hyperthreading struct {
	// controlPlane is Enabled or Disabled, for control-plane hosts. Default: Enabled.
	// +optional
	// +kubebuilder:validation:Enum=Enabled;Disabled
	ControlPlane string `json:"controlPlane,omitempty"`
	// workers is Enabled or Disabled, for workers. Default: Enabled.
	// +optional
	// +kubebuilder:validation:Enum=Enabled;Disabled
	Workers string `json:"workers,omitempty"`
}

// LoadBalancer defines which load balancer serves API and ingress.
type LoadBalancer struct {
	// type is ClusterManaged or UserManaged. ClusterManaged: keepalived and haproxy on the hosts (the default without
	// loadBalancer). UserManaged: apiVIPs and ingressVIPs are the addresses of a load balancer outside of the cluster.
	// +required
	// +kubebuilder:validation:Enum=ClusterManaged;UserManaged
	Type string `json:"type,omitempty"`
}

// DiskEncryption encrypts the installation disks.
// +kubebuilder:validation:XValidation:rule="self.mode != 'tang' || (has(self.tangServers) && size(self.tangServers) > 0)",message="mode tang needs tangServers"
type DiskEncryption struct {
	// enableOn lists the roles whose disks are encrypted, separated by commas, such as masters,workers. all or none:
	// all disks or no disks.
	// +required
	// +kubebuilder:validation:Enum=none;all;masters;arbiters;workers;"masters,arbiters";"masters,workers";"arbiters,workers";"masters,arbiters,workers"
	EnableOn string `json:"enableOn,omitempty"`
	// mode is tpmv2 or tang. tang needs tangServers.
	// +required
	// +kubebuilder:validation:Enum=tpmv2;tang
	Mode string `json:"mode,omitempty"`
	// tangServers is a JSON array of Tang servers, such as [{"url":"http://tang.example.com:7500","thumbprint":"..."}].
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	TangServers string `json:"tangServers,omitempty"`
}

// Capabilities select optional components of the installed cluster.
// +kubebuilder:validation:MinProperties=1
type Capabilities struct {
	// baselineCapability is None, vCurrent or a release such as v4.18. When omitted on platform baremetal, it is None
	// together with the capabilities that such a cluster needs. When omitted on other platforms or with a user-managed
	// load balancer, it is vCurrent, the default of the installer.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^(None|vCurrent|v[0-9]+[.][0-9]+)$')",message="baselineCapability must be None, vCurrent or a release such as v4.18"
	BaselineCapability string `json:"baselineCapability,omitempty"`
	// additionalEnabledCapabilities are enabled in addition to the baseline. At most 64.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AdditionalEnabledCapabilities []string `json:"additionalEnabledCapabilities,omitempty"`
}

// InstallationPhase is the phase of the installation.
// +kubebuilder:validation:Enum=Pending;Preparing;Installing;Finalizing;Installed;Failed
type InstallationPhase string

// The phases of an installation, in order. Failed can follow Preparing, Installing or Finalizing.
const (
	// InstallationPending: hosts are being discovered, and nothing was written to any disk.
	InstallationPending InstallationPhase = "Pending"
	// InstallationPreparing: all hosts are known and approved. assisted-service generates and distributes the
	// installation files.
	InstallationPreparing InstallationPhase = "Preparing"
	// InstallationInstalling: the disks of the hosts are being written.
	InstallationInstalling InstallationPhase = "Installing"
	// InstallationFinalizing: the hosts are installed, and the operators of the cluster are starting.
	InstallationFinalizing InstallationPhase = "Finalizing"
	// InstallationInstalled: the cluster is installed and accepts additional hosts.
	InstallationInstalled InstallationPhase = "Installed"
	// InstallationFailed: assisted-service reports that the installation failed.
	InstallationFailed InstallationPhase = "Failed"
)

// InstallationStatus is the progress of the installation.
// +kubebuilder:validation:MinProperties=1
type InstallationStatus struct {
	// phase is the phase of the installation: Pending, Preparing, Installing, Finalizing, Installed or Failed.
	// +optional
	Phase InstallationPhase `json:"phase,omitempty"`
	// percentage is the completed share of the installation, from 0 to 100 in steps of ten, as assisted-service reports
	// it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *int32 `json:"percentage,omitempty"`
	// progress is the phase with the percentage, as text.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Progress string `json:"progress,omitempty"`
	// startTime is the time at which the installation or its preparation started, as assisted-service reports it. At
	// that time all hosts are registered and approved. Each attempt at a preparation sets another time. Omitted before
	// the start and after the end of the installation.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// attemptTime is the time at which the current attempt at the installation started. It is the creation time of the
	// control plane or, after a retry, the time at which the failed installation was given up. Omitted once the cluster
	// is installed.
	// +optional
	AttemptTime *metav1.Time `json:"attemptTime,omitempty"`
	// workerReplicas is the number of workers that are installed together with the control plane. It does not change
	// once the installation has started.
	// +optional
	// +kubebuilder:validation:Minimum=0
	WorkerReplicas *int32 `json:"workerReplicas,omitempty"`
}

// OpenshiftAssistedControlPlaneStatus is the observed state of the control plane.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneStatus struct {
	// conditions report the state of the control plane, its blocker and the action that resolves it. The types are
	// listed in docs/conditions.md.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// problemReason is the reason of the first condition that reports a problem, in the order in which the conditions
	// matter. Omitted while no condition reports a problem, also while the cluster is installed or upgraded normally.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ProblemReason string `json:"problemReason,omitempty"`

	// initialization contains the fields of the Cluster API contract that report whether the control plane is
	// initialized.
	// +optional
	Initialization OpenshiftAssistedControlPlaneInitializationStatus `json:"initialization,omitempty,omitzero"`

	// selector selects the control-plane Machines, in the string form of a label selector.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// replicas is the number of control-plane Machines.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// readyReplicas is the number of control-plane Machines that are Ready.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`
	// availableReplicas is the number of control-plane Machines that are Available.
	// +optional
	AvailableReplicas *int32 `json:"availableReplicas,omitempty"`
	// upToDateReplicas is the number of control-plane Machines that are UpToDate.
	// +optional
	UpToDateReplicas *int32 `json:"upToDateReplicas,omitempty"`

	// distributionVersion is the OpenShift or OKD release that the cluster completed last, without leading v. Omitted
	// before the first.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DistributionVersion string `json:"distributionVersion,omitempty"`
	// version is the Kubernetes version of the control plane, the lowest of versions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// versions are the Kubernetes versions of the control plane, lowest first: that of the API servers, all of which run
	// it. Before the cluster reports a version it is that of the spec; omitted if the spec has none.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []StatusVersion `json:"versions,omitempty"`
	// releaseImage is the release image that is installed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ReleaseImage string `json:"releaseImage,omitempty"`

	// kubeconfigExpirationTime is the time at which the token of the published kubeconfig expires. The provider renews
	// the token after half of its lifetime. Omitted while the kubeconfig has no token.
	// +optional
	KubeconfigExpirationTime *metav1.Time `json:"kubeconfigExpirationTime,omitempty"`

	// installation is the progress of the installation.
	// +optional
	Installation InstallationStatus `json:"installation,omitempty,omitzero"`

	// upgrade is the upgrade in progress of the installed cluster, from any source. Omitted while no upgrade is in
	// progress.
	// +optional
	Upgrade UpgradeStatus `json:"upgrade,omitempty,omitzero"`
	// poolsBehind lists MachineConfigPools of workers with Nodes that do not run the release of the control plane yet.
	// For example, the pool is paused. At most 32. The provider reports them from the start of an upgrade until all
	// Nodes run the release. Omitted while no such pool is known.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PoolsBehind []string `json:"poolsBehind,omitempty"`

	// pausedPools lists the MachineConfigPools of workers that the provider has paused (spec.upgrade.pauseWorkerPools), and
	// will resume. At most 32. The condition RollingOut reports since when. Omitted while there is none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PausedPools []string `json:"pausedPools,omitempty"`

	// lastRemediation is the last replacement of an unhealthy Machine.
	// +optional
	LastRemediation LastRemediationStatus `json:"lastRemediation,omitempty,omitzero"`

	// observedGeneration is the generation of the spec from which the status was computed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// UpgradeStatus is the progress of an upgrade. The Nodes are restarted at the end of the upgrade, one after the other.
type UpgradeStatus struct {
	// distributionVersion is the release to which the cluster is upgraded, without leading v.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	DistributionVersion string `json:"distributionVersion,omitempty"`
	// percentage is the completed share of the upgrade, from 0 to 100 in steps of ten, as the cluster reports it.
	// Omitted while the cluster reports none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *int32 `json:"percentage,omitempty"`
}

// LastRemediationStatus is the replacement of an unhealthy Machine.
type LastRemediationStatus struct {
	// machine is the name of the Machine that was replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`
	// time is the time of the decision to delete the Machine.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`
	// retryCount is the number of Machines that were replaced before because of the same failure.
	// +required
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`
}

// StatusVersion is a Kubernetes version with the number of Machines of the control plane that run it.
type StatusVersion struct {
	// version is a semantic version with leading v.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// replicas is the number of Machines with the version.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`
}

// OpenshiftAssistedControlPlaneInitializationStatus contains fields that stay true once they are true.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true once the API server of the cluster has answered.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// OpenshiftAssistedControlPlane installs an OpenShift cluster and manages its control plane.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedcontrolplanes,scope=Namespaced,categories=cluster-api,shortName=oacp;oacps
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Release",type="string",JSONPath=".spec.distributionVersion",description="Desired OpenShift or OKD release"
// +kubebuilder:printcolumn:name="Runs",type="string",JSONPath=".status.distributionVersion",description="Release that the cluster runs"
// +kubebuilder:printcolumn:name="Installation",type="string",JSONPath=".status.installation.progress",description="Phase and percentage of the installation"
// +kubebuilder:printcolumn:name="Installing For",type="date",priority=10,JSONPath=".status.installation.startTime",description="Time since all hosts were registered, while the cluster is being installed"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type=='Available')].status",description="True when the control plane serves"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.problemReason",description="Reason of the first condition that reports a problem"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="Desired Machines"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Machines"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Ready Machines"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",priority=10,JSONPath=".status.upToDateReplicas",description="Up-to-date Machines"
// +kubebuilder:printcolumn:name="Initialized",type="boolean",priority=10,JSONPath=".status.initialization.controlPlaneInitialized",description="True once the API server has answered"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".status.version",description="Kubernetes version of the control plane"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:validation:XValidation:rule="has(self.spec.arbiter) == has(oldSelf.spec.arbiter)",message="spec.arbiter can be set only at creation and cannot be removed: revert the change, or create another control plane"
// +kubebuilder:validation:XValidation:rule="has(self.spec.fencing) == has(oldSelf.spec.fencing)",message="spec.fencing can be set only at creation and cannot be removed: revert the change, or create another control plane"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.installation.phase.orValue('Pending') in ['Preparing', 'Installing', 'Finalizing']) || self.spec.?replicas == oldSelf.spec.?replicas",message="spec.replicas cannot change while the cluster is being installed"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (self.spec.?replicas.orValue(1) == 1) == (oldSelf.spec.?replicas.orValue(1) == 1)",message="replicas cannot change from or to 1 once the installation has started: a single-node cluster cannot become a multi-node cluster, nor vice versa"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.apiVIPs) == has(oldSelf.spec.config.apiVIPs) && (!has(self.spec.config.apiVIPs) || self.spec.config.apiVIPs == oldSelf.spec.config.apiVIPs) && has(self.spec.config.ingressVIPs) == has(oldSelf.spec.config.ingressVIPs) && (!has(self.spec.config.ingressVIPs) || self.spec.config.ingressVIPs == oldSelf.spec.config.ingressVIPs) && has(self.spec.config.machineNetwork) == has(oldSelf.spec.config.machineNetwork) && (!has(self.spec.config.machineNetwork) || self.spec.config.machineNetwork == oldSelf.spec.config.machineNetwork) && has(self.spec.config.networkType) == has(oldSelf.spec.config.networkType) && (!has(self.spec.config.networkType) || self.spec.config.networkType == oldSelf.spec.config.networkType) && has(self.spec.config.loadBalancer) == has(oldSelf.spec.config.loadBalancer) && (!has(self.spec.config.loadBalancer) || self.spec.config.loadBalancer == oldSelf.spec.config.loadBalancer))",message="apiVIPs, ingressVIPs, machineNetwork, networkType and loadBalancer cannot change once the installation has started"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.clusterName) == has(oldSelf.spec.config.clusterName) && (!has(self.spec.config.clusterName) || self.spec.config.clusterName == oldSelf.spec.config.clusterName))",message="clusterName cannot change once the installation has started"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.hostPrefix) == has(oldSelf.spec.config.hostPrefix) && (!has(self.spec.config.hostPrefix) || self.spec.config.hostPrefix == oldSelf.spec.config.hostPrefix) && has(self.spec.config.externalPlatform) == has(oldSelf.spec.config.externalPlatform) && (!has(self.spec.config.externalPlatform) || self.spec.config.externalPlatform == oldSelf.spec.config.externalPlatform) && has(self.spec.config.hyperthreading) == has(oldSelf.spec.config.hyperthreading) && (!has(self.spec.config.hyperthreading) || self.spec.config.hyperthreading == oldSelf.spec.config.hyperthreading))",message="hostPrefix, externalPlatform and hyperthreading cannot change once the installation has started"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.ignoredValidations) == has(oldSelf.spec.config.ignoredValidations) && (!has(self.spec.config.ignoredValidations) || self.spec.config.ignoredValidations == oldSelf.spec.config.ignoredValidations))",message="the installation has started: change the annotations of the AgentClusterInstall instead of ignoredValidations, once the cluster is installed and adds hosts"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.ntpSources) == has(oldSelf.spec.config.ntpSources) && (!has(self.spec.config.ntpSources) || self.spec.config.ntpSources == oldSelf.spec.config.ntpSources))",message="the installation has started: change the NTP servers by a MachineConfig in the installed cluster instead of ntpSources"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.proxy) == has(oldSelf.spec.config.proxy) && (!has(self.spec.config.proxy) || self.spec.config.proxy == oldSelf.spec.config.proxy) && has(self.spec.config.diskEncryption) == has(oldSelf.spec.config.diskEncryption) && (!has(self.spec.config.diskEncryption) || self.spec.config.diskEncryption == oldSelf.spec.config.diskEncryption) && has(self.spec.config.capabilities) == has(oldSelf.spec.config.capabilities) && (!has(self.spec.config.capabilities) || self.spec.config.capabilities == oldSelf.spec.config.capabilities) && has(self.spec.config.installConfigOverride) == has(oldSelf.spec.config.installConfigOverride) && (!has(self.spec.config.installConfigOverride) || self.spec.config.installConfigOverride == oldSelf.spec.config.installConfigOverride) && has(self.spec.config.manifestsConfigMapRefs) == has(oldSelf.spec.config.manifestsConfigMapRefs) && (!has(self.spec.config.manifestsConfigMapRefs) || self.spec.config.manifestsConfigMapRefs == oldSelf.spec.config.manifestsConfigMapRefs) && has(self.spec.config.mastersSchedulable) == has(oldSelf.spec.config.mastersSchedulable) && (!has(self.spec.config.mastersSchedulable) || self.spec.config.mastersSchedulable == oldSelf.spec.config.mastersSchedulable) && has(self.spec.config.sshAuthorizedKey) == has(oldSelf.spec.config.sshAuthorizedKey) && (!has(self.spec.config.sshAuthorizedKey) || self.spec.config.sshAuthorizedKey == oldSelf.spec.config.sshAuthorizedKey) && has(self.spec.config.imageRegistryRef) == has(oldSelf.spec.config.imageRegistryRef) && (!has(self.spec.config.imageRegistryRef) || self.spec.config.imageRegistryRef == oldSelf.spec.config.imageRegistryRef))",message="the installation has started: change proxy, diskEncryption, capabilities, manifests, mastersSchedulable, SSH key and registry mirrors in the installed cluster instead"
type OpenshiftAssistedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec defines the desired control plane.
	// +required
	Spec OpenshiftAssistedControlPlaneSpec `json:"spec,omitempty,omitzero"`
	// status is the observed state of the control plane.
	// +optional
	Status OpenshiftAssistedControlPlaneStatus `json:"status,omitempty,omitzero"`
}

// GetConditions returns the conditions of the object.
func (c *OpenshiftAssistedControlPlane) GetConditions() []metav1.Condition {
	return c.Status.Conditions
}

// SetConditions replaces the conditions of the object.
func (c *OpenshiftAssistedControlPlane) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// OpenshiftAssistedControlPlaneList is a list of OpenshiftAssistedControlPlane.
// +kubebuilder:object:root=true
type OpenshiftAssistedControlPlaneList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OpenshiftAssistedControlPlane `json:"items"`
}
