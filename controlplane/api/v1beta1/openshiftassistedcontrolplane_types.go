package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
)

const (
	// OpenshiftAssistedControlPlaneFinalizer keeps an OpenshiftAssistedControlPlane until its Machines and the registration of
	// the cluster in assisted-service are gone.
	OpenshiftAssistedControlPlaneFinalizer = "openshiftassistedcontrolplane.controlplane.cluster.x-k8s.io/deprovision"

	// EtcdMemberHookAnnotation keeps Cluster API from touching the host of a control-plane Machine that is being deleted, as long as the host is a member of etcd. All
	// control-plane Machines of installed clusters have it.
	EtcdMemberHookAnnotation = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/openshift-etcd-member"

	// DeleteProtectionAnnotation marks the infrastructure machine of a control-plane Machine as long as the Machine has the hook: an admission policy that comes with the bootstrap provider refuses
	// the deletion of the infrastructure machine, which would switch the host off past the hook.
	DeleteProtectionAnnotation = "controlplane.cluster.x-k8s.io/delete-protection"

	// ReleasedHostsAnnotation holds, on a control plane, what is known of control-plane hosts that were released from etcd (Machine, Node, identity, members), until what they
	// leave behind is cleaned up.
	ReleasedHostsAnnotation = "controlplane.cluster.x-k8s.io/released-hosts"

	// ReleaseImageRepositoryOverrideAnnotation holds the repository (registry/path, no tag) from which the release image of this
	// control plane is taken instead of the default one: <repository>:<version>-<architecture>.
	ReleaseImageRepositoryOverrideAnnotation = "cluster.x-k8s.io/release-image-repository-override"

	// PassOnAnnotation names, separated by commas, labels and annotations of the control plane that reach its ClusterDeployment and AgentClusterInstall beside those that
	// always do: those that hive, assisted-service, the siteconfig operator and Advanced Cluster Management read.
	PassOnAnnotation = "controlplane.cluster.x-k8s.io/pass-on"

	// InstallConfigOverrideAnnotation holds a JSON merged into the install-config, as spec.config.installConfigOverride does; the
	// field wins where both set the same.
	InstallConfigOverrideAnnotation = "controlplane.cluster.x-k8s.io/install-config-override"
)

// OpenshiftAssistedControlPlaneSpec is the wanted control plane.
// +kubebuilder:validation:XValidation:rule="!has(self.arbiter) || self.?replicas.orValue(1) == 3",message="with an arbiter replicas must be 3: two masters and the arbiter"
// +kubebuilder:validation:XValidation:rule="!has(self.arbiter) || (size(self.config.?apiVIPs.orValue([])) > 0 && size(self.config.?ingressVIPs.orValue([])) > 0)",message="a cluster with an arbiter is one of platform baremetal: set config.apiVIPs and config.ingressVIPs"
// +kubebuilder:validation:XValidation:rule="!has(self.arbiter) || self.version.matches('^v?([5-9]|[1-9][0-9]+|4[.]([2-9][0-9]|[1-9][0-9][0-9]+))[.]')",message="an arbiter needs version 4.20 or newer: in 4.19 it is a technology preview, which cannot be upgraded, and before there is none"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || self.?replicas.orValue(1) == 2",message="with fencing replicas must be 2: a cluster of two nodes, each of which can power off the other"
// +kubebuilder:validation:XValidation:rule="has(self.fencing) || self.?replicas.orValue(1) != 2",message="two nodes have no quorum of their own: with replicas 2 set fencing, or set replicas to 3 with an arbiter"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || !has(self.config.externalPlatform)",message="a cluster with fencing is one of platform baremetal or none: remove config.externalPlatform"
// +kubebuilder:validation:XValidation:rule="!has(self.fencing) || self.version.matches('^v?([5-9]|[1-9][0-9]+|4[.]([2-9][0-9]|[1-9][0-9][0-9]+))[.]')",message="fencing needs version 4.20 or newer: before there are no clusters of two nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas in [1, 2, 3, 4, 5]",message="replicas must be 1 (single node), 2 (with fencing), 3, 4 or 5"
// +kubebuilder:validation:XValidation:rule="self.?replicas.orValue(1) != 1 || (size(self.config.?apiVIPs.orValue([])) == 0 && size(self.config.?ingressVIPs.orValue([])) == 0)",message="a single-node cluster (replicas: 1) has no VIPs: remove config.apiVIPs and config.ingressVIPs, or set replicas to 3, 4 or 5"
type OpenshiftAssistedControlPlaneSpec struct {
	// replicas is the number of control-plane Machines: 1 (single node), 2 (with fencing), 3, 4 or 5. 1 when omitted.
	// +optional
	// +kubebuilder:default=1
	Replicas *int32 `json:"replicas,omitempty"`

	// version is the OpenShift or OKD release: 4.19.3, v4.19.3 or 4.19.0-okd-scos.5. It is not a Kubernetes version. A newer one than an
	// installed cluster runs upgrades it, in place; an older one is never gone back to.
	// +required
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	Version string `json:"version,omitempty"`

	// machineTemplate is what the control-plane Machines are made from.
	// +required
	MachineTemplate OpenshiftAssistedControlPlaneMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// arbiter makes one of the three control-plane Machines an arbiter: a member of etcd on a small host that runs little else, beside two masters. It is there from the
	// beginning, or never; what it says may be changed.
	// +optional
	Arbiter *ArbiterSpec `json:"arbiter,omitempty"`

	// fencing makes a cluster of two nodes and nothing else: each powers off the other by its BMC before it goes on alone. It is there from the beginning, or never, and
	// replicas is 2. The hosts need BMCs that speak Redfish. OpenShift 4.20 and 4.21 have it as a technology preview, which cannot be upgraded.
	// +optional
	Fencing *FencingSpec `json:"fencing,omitempty"`

	// machineNaming gives the Machines other names than <control plane>-<5 characters>.
	// +optional
	MachineNaming MachineNamingSpec `json:"machineNaming,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of each control-plane Machine's OpenshiftAssistedConfig.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPool)",message="machineConfigPool is for workers: hosts of the control plane belong to the pool master"
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role is set by the control plane provider: set spec.arbiter to make one of the Machines an arbiter"
	OpenshiftAssistedConfigSpec bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty,omitzero"`

	// remediation limits how often unhealthy Machines are replaced, which a MachineHealthCheck finds.
	// +optional
	Remediation RemediationSpec `json:"remediation,omitempty,omitzero"`

	// upgrade says how an installed cluster is brought to another version.
	// +optional
	Upgrade UpgradeSpec `json:"upgrade,omitempty,omitzero"`

	// kubeconfig states what the published kubeconfig (Secret <cluster>-kubeconfig) needs in addition to what assisted-service and the cluster give.
	// +optional
	Kubeconfig KubeconfigSpec `json:"kubeconfig,omitempty,omitzero"`

	// config is the installation's configuration.
	// +required
	Config InstallationConfig `json:"config,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneMachineTemplate is what the control-plane Machines are made from.
type OpenshiftAssistedControlPlaneMachineTemplate struct {
	// metadata goes, in place, to the Machines, their infra machines and OpenshiftAssistedConfigs.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec goes to the Machines; all of it but infrastructureRef in place.
	// +required
	Spec OpenshiftAssistedControlPlaneMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// OpenshiftAssistedControlPlaneMachineTemplateSpec goes to the Machines.
type OpenshiftAssistedControlPlaneMachineTemplateSpec struct {
	// infrastructureRef names the template of the infra machines, in the same namespace.
	// +required
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	OpenshiftAssistedControlPlaneMachineSettings `json:",inline"`
}

// OpenshiftAssistedControlPlaneMachineSettings are the fields of a Machine that change in place.
type OpenshiftAssistedControlPlaneMachineSettings struct {
	// readinessGates are further conditions that a Machine needs to be Ready.
	// +optional
	// +listType=map
	// +listMapKey=conditionType
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	ReadinessGates []clusterv1.MachineReadinessGate `json:"readinessGates,omitempty"`

	// deletion holds the time-outs of a Machine's deletion.
	// +optional
	Deletion MachineDeletionSpec `json:"deletion,omitempty,omitzero"`

	// taints of the Node, applied by Cluster API where its feature gate MachineTaintPropagation is on.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +listMapKey=effect
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Taints []clusterv1.MachineTaint `json:"taints,omitempty"`
}

// ArbiterSpec is what the Machine of an arbiter is made from. Each field that is omitted is that of the other control-plane Machines.
type ArbiterSpec struct {
	// machineTemplate is what the Machine is made from.
	// +optional
	MachineTemplate ArbiterMachineTemplate `json:"machineTemplate,omitempty,omitzero"`

	// openshiftAssistedConfigSpec is the spec of the Machine's OpenshiftAssistedConfig.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.machineConfigPool)",message="machineConfigPool is for workers: the host of an arbiter belongs to the pool arbiter"
	// +kubebuilder:validation:XValidation:rule="!has(self.role)",message="role of an arbiter is set by the control plane provider: leave it out, spec.arbiter says it"
	OpenshiftAssistedConfigSpec *bootstrapv1.OpenshiftAssistedConfigSpec `json:"openshiftAssistedConfigSpec,omitempty"`
}

// ArbiterMachineTemplate is what the Machine of an arbiter is made from.
// +kubebuilder:validation:MinProperties=1
type ArbiterMachineTemplate struct {
	// metadata goes, in place, to the Machine, its infra machine and OpenshiftAssistedConfig.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec goes to the Machine; all of it but infrastructureRef in place.
	// +optional
	Spec ArbiterMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// ArbiterMachineTemplateSpec goes to the Machine of an arbiter.
// +kubebuilder:validation:MinProperties=1
type ArbiterMachineTemplateSpec struct {
	// infrastructureRef names the template of the infra machine, in the same namespace.
	// +optional
	InfrastructureRef clusterv1.ContractVersionedObjectReference `json:"infrastructureRef,omitempty,omitzero"`

	OpenshiftAssistedControlPlaneMachineSettings `json:",inline"`
}

// FencingSpec says how the two nodes of a cluster fence each other.
type FencingSpec struct {
	// credentialsFrom says where the addresses and credentials come from by which the nodes reach each other's BMCs. BareMetalHosts: from the BareMetalHost of each Machine
	// and the Secret that its spec.bmc.credentialsName names, or from the Secret that its annotation bmac.agent-install.openshift.io/fencing-credentials-secret-name
	// names. They are copied into the cluster: whoever administers it can power its hosts off and on.
	// +required
	CredentialsFrom FencingCredentialsSource `json:"credentialsFrom,omitempty"`
}

// FencingCredentialsSource is where the credentials of BMCs come from.
// +kubebuilder:validation:Enum=BareMetalHosts
type FencingCredentialsSource string

// FencingCredentialsFromBareMetalHosts takes them from the BareMetalHosts of the Machines.
const FencingCredentialsFromBareMetalHosts FencingCredentialsSource = "BareMetalHosts"

// MachineDeletionSpec holds the time-outs of a Machine's deletion, in seconds. 0 or omitted: no limit.
// +kubebuilder:validation:MinProperties=1
type MachineDeletionSpec struct {
	// nodeDrainTimeoutSeconds limits the draining of the Node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDrainTimeoutSeconds *int32 `json:"nodeDrainTimeoutSeconds,omitempty"`
	// nodeVolumeDetachTimeoutSeconds limits the wait for volumes to be detached.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeVolumeDetachTimeoutSeconds *int32 `json:"nodeVolumeDetachTimeoutSeconds,omitempty"`
	// nodeDeletionTimeoutSeconds limits the attempts to delete the Node. Cluster API takes 10 when it is omitted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NodeDeletionTimeoutSeconds *int32 `json:"nodeDeletionTimeoutSeconds,omitempty"`
}

// MachineNamingSpec gives the Machines their names.
// +kubebuilder:validation:MinProperties=1
type MachineNamingSpec struct {
	// template is a Go template with the variables .cluster.name, .controlPlane.name (called .kubeadmControlPlane by KubeadmControlPlane)
	// and .random, which it must contain: '{{ .controlPlane.name }}-{{ .random }}'. It holds no actions or functions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('[{][{] *[.]random *[}][}]')",message="template must contain {{ .random }}"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^{}]|[{][{]-? *[.](random|(cluster|controlPlane|kubeadmControlPlane)[.]name) *-?[}][}])*$')",message="template may hold text and the variables {{ .cluster.name }}, {{ .controlPlane.name }} and {{ .random }}, and nothing else"
	Template string `json:"template,omitempty"`
}

// RemediationSpec limits how often unhealthy Machines are replaced. The fields are those of KubeadmControlPlane.
// +kubebuilder:validation:MinProperties=1
type RemediationSpec struct {
	// maxRetry is how often a Machine that took the place of an unhealthy one is replaced in turn, when it becomes unhealthy within
	// minHealthyPeriodSeconds. No limit when omitted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MaxRetry *int32 `json:"maxRetry,omitempty"`
	// retryPeriodSeconds is the least time between two of these replacements. 0 when omitted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	RetryPeriodSeconds *int32 `json:"retryPeriodSeconds,omitempty"`
	// minHealthyPeriodSeconds is for how long after a replacement what befalls the new Machine counts as a failure of the same. 3600 when
	// omitted. The installation of the new host is a part of that time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinHealthyPeriodSeconds *int32 `json:"minHealthyPeriodSeconds,omitempty"`
}

// UpgradeSpec says how an installed cluster is brought to another version.
// +kubebuilder:validation:MinProperties=1
type UpgradeSpec struct {
	// channel of the update graph in which the cluster looks for the release, such as stable-4.20. It is set for an upgrade; the cluster's own is left as it is when omitted, and
	// between upgrades.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Channel string `json:"channel,omitempty"`

	// acknowledgements name what an administrator has checked before an upgrade to another minor version, as the release asks for it: the keys of
	// ConfigMap openshift-config-managed/admin-gates of the cluster, such as ack-4.19-kube-1.33-api-removals-in-4.20. Those that the
	// cluster asks for are told in the condition MachinesUpToDate.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Acknowledgements []string `json:"acknowledgements,omitempty"`

	// acceptedRisks name the risks of updates that the update graph does not recommend to this cluster: the names of the risks in
	// status.conditionalUpdates of its ClusterVersion. An update with a risk that is not named is not asked for; the condition MachinesUpToDate tells its risks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	AcceptedRisks []string `json:"acceptedRisks,omitempty"`

	// toleratedOperators name ClusterOperators that may be degraded or unavailable when an upgrade is requested, because the release fixes them. The condition MachinesUpToDate
	// and the Event UpgradeRequested report them. They apply to each upgrade until they are removed. ClusterOperators etcd, kube-apiserver and machine-config cannot be tolerated:
	// an upgrade restarts the hosts of the control plane by means of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="!self.exists(o, o in ['etcd', 'kube-apiserver', 'machine-config'])",message="etcd, kube-apiserver and machine-config cannot be tolerated: an upgrade restarts the control plane by means of them. Repair them first"
	ToleratedOperators []string `json:"toleratedOperators,omitempty"`

	// waivePreconditionsAndSignaturesFor is a version, with or without leading v, for which the cluster is asked to check neither its preconditions nor the signature of the
	// release image (force). It counts as long as version is the same; what the provider itself looks at is not waived. What is forced may not work, and cannot be taken back.
	// +optional
	// +kubebuilder:validation:MinLength=5
	// +kubebuilder:validation:MaxLength=128
	WaivePreconditionsAndSignaturesFor string `json:"waivePreconditionsAndSignaturesFor,omitempty"`
}

// KubeconfigSpec states what the published kubeconfig needs in addition to what assisted-service and the cluster give.
// +kubebuilder:validation:MinProperties=1
type KubeconfigSpec struct {
	// additionalTrustBundle holds certificate authorities (PEM), at most 16, that the kubeconfig trusts in addition to those of the cluster: those of the serving certificates that
	// the cluster was given (namedCertificates), or of a load balancer. It can be changed at any time. An authority that is withdrawn leaves the kubeconfig when the
	// cluster is connected and its API server does not need the authority; one that was in the kubeconfig before, or that the cluster reports, stays. A kubeconfig
	// without any authority stays so: there the authorities of the system count.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.matches('^[[:space:]]*(-----BEGIN CERTIFICATE-----[[:space:]][A-Za-z0-9+/=[:space:]]+-----END CERTIFICATE-----[[:space:]]*)+$')",message="additionalTrustBundle must hold PEM certificates (-----BEGIN CERTIFICATE-----) and nothing else: no keys, no comments"
	// +kubebuilder:validation:XValidation:rule="size(self.split('-----BEGIN CERTIFICATE-----')) <= 17",message="additionalTrustBundle must hold at most 16 certificates"
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`
}

// InstallationConfig is the configuration of the installation. It is read until the installation starts; what cannot change after
// that is refused.
// +kubebuilder:validation:XValidation:rule="self.baseDomain == oldSelf.baseDomain",message="baseDomain is immutable"
// +kubebuilder:validation:XValidation:rule="size(self.?apiVIPs.orValue([])) == size(self.?ingressVIPs.orValue([]))",message="apiVIPs and ingressVIPs must have the same number of addresses: one each, or two each for dual-stack"
// +kubebuilder:validation:XValidation:rule="!has(self.machineNetwork) || !has(self.apiVIPs) || self.apiVIPs.all(v, !isIP(v) || self.machineNetwork.exists(n, isCIDR(n) && cidr(n).containsIP(ip(v))))",message="each of apiVIPs must lie in one of machineNetwork (also that of a user-managed load balancer)"
// +kubebuilder:validation:XValidation:rule="!has(self.machineNetwork) || !has(self.ingressVIPs) || self.ingressVIPs.all(v, !isIP(v) || self.machineNetwork.exists(n, isCIDR(n) && cidr(n).containsIP(ip(v))))",message="each of ingressVIPs must lie in one of machineNetwork (also that of a user-managed load balancer)"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') == 'UserManaged' || !has(self.apiVIPs) || !has(self.ingressVIPs) || !self.apiVIPs.exists(a, isIP(a) && self.ingressVIPs.exists(i, isIP(i) && ip(a) == ip(i)))",message="apiVIPs and ingressVIPs must be different addresses (or set loadBalancer.type to UserManaged)"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') != 'UserManaged' || (has(self.apiVIPs) && size(self.apiVIPs) > 0 && has(self.machineNetwork) && size(self.machineNetwork) > 0)",message="a user-managed load balancer needs its addresses in apiVIPs and ingressVIPs, and machineNetwork"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') != 'UserManaged' || (size(self.?apiVIPs.orValue([])) < 2 && (!has(self.machineNetwork) || !self.machineNetwork.all(n, isCIDR(n)) || self.machineNetwork.all(n, cidr(n).ip().family() == cidr(self.machineNetwork[0]).ip().family())))",message="a cluster with a user-managed load balancer cannot be dual-stack: give apiVIPs, ingressVIPs and machineNetwork one address family"
// +kubebuilder:validation:XValidation:rule="self.?loadBalancer.type.orValue('ClusterManaged') == 'UserManaged' || !has(self.machineNetwork) || size(self.machineNetwork) < 2 || !self.machineNetwork.all(n, isCIDR(n)) || self.machineNetwork.exists(n, cidr(n).ip().family() != cidr(self.machineNetwork[0]).ip().family())",message="several networks of one address family in machineNetwork need a user-managed load balancer: keep one network, or set loadBalancer.type to UserManaged"
// +kubebuilder:validation:XValidation:rule="!has(self.machineNetwork) || size(self.machineNetwork) < 3 || !self.machineNetwork.all(n, isCIDR(n)) || self.machineNetwork.all(n, cidr(n).ip().family() == cidr(self.machineNetwork[0]).ip().family())",message="machineNetwork of a dual-stack cluster must be one IPv4 and one IPv6 network"
// +kubebuilder:validation:XValidation:rule="size(self.?apiVIPs.orValue([])) != 2 || has(self.machineNetwork)",message="a dual-stack cluster (two apiVIPs) needs machineNetwork: one IPv4 and one IPv6 network"
// +kubebuilder:validation:XValidation:rule="!(has(self.releaseImage) && has(self.clusterImageSetRef))",message="give the release as releaseImage or as clusterImageSetRef, not both"
// +kubebuilder:validation:XValidation:rule="!has(self.externalPlatform) || (size(self.?apiVIPs.orValue([])) == 0 && size(self.?ingressVIPs.orValue([])) == 0)",message="on an external platform the cluster has no virtual addresses: remove apiVIPs and ingressVIPs, or externalPlatform"
type InstallationConfig struct {
	// baseDomain is the DNS domain below which the cluster lives: its API is api.<clusterName>.<baseDomain>.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=184
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self.matches('(^|[.])[a-z0-9-]{2,}$') && !self.matches('^[0-9]+([.][0-9]+){3}$')",message="baseDomain must end with a label of two or more characters, and cannot be an IP address"
	BaseDomain string `json:"baseDomain,omitempty"`

	// clusterName is the first part of the cluster's DNS name. The Cluster's name when omitted, which must be as short and, on platforms other than none, without a dot.
	// It can be changed until the installation starts.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=54
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	ClusterName string `json:"clusterName,omitempty"`

	// releaseImage is the release image of version by digest: registry/path@sha256:... With it no registry is asked anything. When neither it nor
	// clusterImageSetRef is given, the image follows from version and is looked up once; an upgrade takes the one that the cluster's update graph offers.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s@]+@sha256:[a-f0-9]{64}$`
	ReleaseImage string `json:"releaseImage,omitempty"`

	// clusterImageSetRef names an existing ClusterImageSet of the release. With it no registry is asked anything. For an upgrade to a release that the
	// update graph of the cluster does not offer, its image must be named by digest.
	// +optional
	ClusterImageSetRef *ClusterImageSetReference `json:"clusterImageSetRef,omitempty"`

	// pullSecretRef names a Secret of type kubernetes.io/dockerconfigjson in the same namespace. When omitted (OKD needs none), a
	// placeholder of the cluster's own is used.
	// +optional
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`

	// apiVIPs are the virtual addresses of the cluster's API: one, or two for dual-stack. With apiVIPs and ingressVIPs the platform is
	// baremetal, without them none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="self.all(v, isIP(v))",message="apiVIPs must be IP addresses"
	// +kubebuilder:validation:XValidation:rule="size(self) != 2 || !isIP(self[0]) || !isIP(self[1]) || ip(self[0]).family() != ip(self[1]).family()",message="two apiVIPs must be one IPv4 and one IPv6 address"
	APIVIPs []string `json:"apiVIPs,omitempty"`

	// ingressVIPs are the virtual addresses of the cluster's ingress: one, or two for dual-stack.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=39
	// +kubebuilder:validation:XValidation:rule="self.all(v, isIP(v))",message="ingressVIPs must be IP addresses"
	// +kubebuilder:validation:XValidation:rule="size(self) != 2 || !isIP(self[0]) || !isIP(self[1]) || ip(self[0]).family() != ip(self[1]).family()",message="two ingressVIPs must be one IPv4 and one IPv6 address"
	IngressVIPs []string `json:"ingressVIPs,omitempty"`

	// machineNetwork are the networks (CIDRs) of the hosts: one, or one IPv4 and one IPv6 network of a dual-stack cluster, in the order of its VIPs. With a user-managed load
	// balancer there may be several of one address family, and the network of the load balancer is one of them. When omitted, assisted-service derives it from the hosts'
	// addresses; a dual-stack cluster needs it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="self.all(n, isCIDR(n))",message="machineNetwork must be CIDRs such as 192.168.111.0/24"
	// +kubebuilder:validation:XValidation:rule="self.all(n, !isCIDR(n) || cidr(n) == cidr(n).masked())",message="machineNetwork must be the addresses of networks, without host bits: 192.168.111.0/24, not 192.168.111.20/24"
	MachineNetwork []string `json:"machineNetwork,omitempty"`

	// networkType is the network plug-in: OVNKubernetes, or the name of a third-party one whose manifests come by
	// manifestsConfigMapRefs. The release's default when omitted.
	// +optional
	// +kubebuilder:validation:Enum=OpenShiftSDN;OVNKubernetes;Calico;Cilium;CiscoACI;None
	NetworkType string `json:"networkType,omitempty"`

	// hostPrefix is how much of the network of Pods (spec.clusterNetwork of the Cluster) each Node gets.
	// +optional
	HostPrefix *HostPrefix `json:"hostPrefix,omitempty"`

	// externalPlatform makes the platform external, whose provider is told by manifestsConfigMapRefs, instead of none.
	// +optional
	ExternalPlatform *ExternalPlatform `json:"externalPlatform,omitempty"`

	// hyperthreading of the hosts, which is enabled when omitted.
	// +optional
	Hyperthreading *Hyperthreading `json:"hyperthreading,omitempty"`

	// loadBalancer says who balances the load of API and ingress.
	// +optional
	LoadBalancer *LoadBalancer `json:"loadBalancer,omitempty"`

	// proxy of the installed cluster.
	// +optional
	Proxy *bootstrapv1.Proxy `json:"proxy,omitempty"`

	// sshAuthorizedKey gives access to the installed hosts as user core.
	// +optional
	// +kubebuilder:validation:MaxLength=16384
	SSHAuthorizedKey string `json:"sshAuthorizedKey,omitempty"`

	// mastersSchedulable lets the control-plane Nodes run workloads. Clusters without workers do so anyway.
	// +optional
	MastersSchedulable *bool `json:"mastersSchedulable,omitempty"`

	// holdInstallation keeps the installation from starting when everything is ready.
	// +optional
	HoldInstallation *bool `json:"holdInstallation,omitempty"`

	// manifestsConfigMapRefs name ConfigMaps in the same namespace whose keys are further manifests of the installation.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ManifestsConfigMapRefs []corev1.LocalObjectReference `json:"manifestsConfigMapRefs,omitempty"`

	// imageRegistryRef names a ConfigMap in the same namespace with the keys registries.conf and, optionally, ca-bundle.crt: the
	// registry mirrors of the hosts and of the installed cluster. The manager looks up the release image in the same mirrors, before its own registry.
	// +optional
	ImageRegistryRef *corev1.LocalObjectReference `json:"imageRegistryRef,omitempty"`

	// diskEncryption encrypts the installation disks.
	// +optional
	DiskEncryption *DiskEncryption `json:"diskEncryption,omitempty"`

	// capabilities of the installed cluster. With a user-managed load balancer they need an assisted-service of April 2026 or newer, as installConfigOverride does:
	// older ones refuse both with "has no bootstrap host".
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// installConfigOverride is a JSON object that is merged into the install-config; it wins over what is generated from other fields.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || (self.startsWith('{') && self.endsWith('}'))",message="installConfigOverride must be a JSON object"
	InstallConfigOverride string `json:"installConfigOverride,omitempty"`
}

// ClusterImageSetReference names a ClusterImageSet.
type ClusterImageSetReference struct {
	// name of the ClusterImageSet, which is cluster-scoped.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// HostPrefix is how much of the network of Pods each Node gets, as the length of a prefix.
// +kubebuilder:validation:MinProperties=1
type HostPrefix struct {
	// ipv4 is the length in networks of IPv4. 23 when omitted, which is 512 addresses, or the whole network where that is smaller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	IPv4 int32 `json:"ipv4,omitempty"`
	// ipv6 is the length in networks of IPv6. 64 when omitted, or the whole network where that is smaller.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	IPv6 int32 `json:"ipv6,omitempty"`
}

// ExternalPlatform is a platform whose provider is not OpenShift's own.
type ExternalPlatform struct {
	// name of the provider. OpenShift only reports it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// cloudControllerManager is External where Nodes are to wait for a cloud controller manager, which the manifests bring. When omitted there is none.
	// +optional
	// +kubebuilder:validation:Enum=External
	CloudControllerManager string `json:"cloudControllerManager,omitempty"`
}

// Hyperthreading says where processors run two threads on a core.
// +kubebuilder:validation:MinProperties=1
type Hyperthreading struct {
	// controlPlane is Enabled or Disabled on the hosts of the control plane. Enabled when omitted.
	// +optional
	// +kubebuilder:validation:Enum=Enabled;Disabled
	ControlPlane string `json:"controlPlane,omitempty"`
	// workers is Enabled or Disabled on the workers. Enabled when omitted.
	// +optional
	// +kubebuilder:validation:Enum=Enabled;Disabled
	Workers string `json:"workers,omitempty"`
}

// LoadBalancer says who balances the load of API and ingress.
type LoadBalancer struct {
	// type is ClusterManaged (keepalived and haproxy on the hosts; the default) or UserManaged (apiVIPs and ingressVIPs are the
	// addresses of a load balancer outside the cluster).
	// +required
	// +kubebuilder:validation:Enum=ClusterManaged;UserManaged
	Type string `json:"type,omitempty"`
}

// DiskEncryption encrypts the installation disks.
// +kubebuilder:validation:XValidation:rule="self.mode != 'tang' || (has(self.tangServers) && size(self.tangServers) > 0)",message="mode tang needs tangServers"
type DiskEncryption struct {
	// enableOn says which hosts' disks are encrypted.
	// +required
	// +kubebuilder:validation:Enum=none;all;masters;arbiters;workers;"masters,arbiters";"masters,workers";"arbiters,workers";"masters,arbiters,workers"
	EnableOn string `json:"enableOn,omitempty"`
	// mode is tpmv2 or tang.
	// +required
	// +kubebuilder:validation:Enum=tpmv2;tang
	Mode string `json:"mode,omitempty"`
	// tangServers is a JSON array: [{"url":"http://tang.example.com:7500","thumbprint":"..."}].
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	TangServers string `json:"tangServers,omitempty"`
}

// Capabilities selects optional components of the installed cluster.
// +kubebuilder:validation:MinProperties=1
type Capabilities struct {
	// baselineCapability is None, vCurrent or a release such as v4.18. When omitted it is None on platform baremetal (with the set of
	// capabilities that such a cluster needs), and the installer's default, vCurrent, on other platforms and with a user-managed load balancer.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^(None|vCurrent|v[0-9]+\.[0-9]+)$`
	BaselineCapability string `json:"baselineCapability,omitempty"`
	// additionalEnabledCapabilities are enabled besides the baseline.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	AdditionalEnabledCapabilities []string `json:"additionalEnabledCapabilities,omitempty"`
}

// InstallationPhase is where the installation is.
// +kubebuilder:validation:Enum=Pending;Preparing;Installing;Finalizing;Installed;Failed
type InstallationPhase string

// The phases of an installation, in order. Failed can follow Preparing, Installing or Finalizing.
const (
	// InstallationPending: hosts are being discovered, nothing was written to any disk.
	InstallationPending InstallationPhase = "Pending"
	// InstallationPreparing: all hosts are known and approved; assisted-service generates and distributes what it installs.
	InstallationPreparing InstallationPhase = "Preparing"
	// InstallationInstalling: the hosts are being written.
	InstallationInstalling InstallationPhase = "Installing"
	// InstallationFinalizing: the hosts are installed, the cluster's operators are coming up.
	InstallationFinalizing InstallationPhase = "Finalizing"
	// InstallationInstalled: the cluster is installed and accepts further hosts.
	InstallationInstalled InstallationPhase = "Installed"
	// InstallationFailed: assisted-service gave up.
	InstallationFailed InstallationPhase = "Failed"
)

// InstallationStatus is the progress of the installation.
// +kubebuilder:validation:MinProperties=1
type InstallationStatus struct {
	// phase is where the installation is.
	// +optional
	Phase InstallationPhase `json:"phase,omitempty"`
	// percentage is how much of the installation is done, as assisted-service counts it, in full tens: 0 to 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *int32 `json:"percentage,omitempty"`
	// progress is phase and percentage for people.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Progress string `json:"progress,omitempty"`
	// startTime is since when the cluster is being installed, its preparation included, as assisted-service tells it: all hosts were there and approved. Each attempt at a
	// preparation begins again. It is not there before, nor when the installation has ended.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// attemptTime is when the present attempt at the installation began: when the control plane was created or, after a retry, when the failed installation was given up. It is omitted once the cluster
	// is installed.
	// +optional
	AttemptTime *metav1.Time `json:"attemptTime,omitempty"`
	// workerReplicas is the number of workers that are installed together with the control plane. It does not change once the
	// installation has started.
	// +optional
	// +kubebuilder:validation:Minimum=0
	WorkerReplicas *int32 `json:"workerReplicas,omitempty"`
}

// OpenshiftAssistedControlPlaneStatus is what was observed of the control plane.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneStatus struct {
	// conditions tell what is the case, what is waited for and what to do about it.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// initialization is the part of the status that Cluster API reads to let the Cluster go on.
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

	// version is the lowest OpenShift version of the control-plane Machines.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// versions are the OpenShift versions of the control-plane Machines, lowest first. Until an upgrade is done the one that the
	// cluster had before is among them, with no replicas once all Machines have the other.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Versions []StatusVersion `json:"versions,omitempty"`
	// kubernetesVersion is the version that the cluster's API server reports.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// releaseImage is the release image that is installed.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ReleaseImage string `json:"releaseImage,omitempty"`

	// kubeconfigExpirationTime is when the token in the published kubeconfig ends. The token is renewed when half of its time has passed. Absent while the kubeconfig has no token.
	// +optional
	KubeconfigExpirationTime *metav1.Time `json:"kubeconfigExpirationTime,omitempty"`

	// installation is the progress of the installation.
	// +optional
	Installation InstallationStatus `json:"installation,omitempty,omitzero"`

	// upgrade is the release that the installed cluster is being brought to, whoever asked for it; omitted: none.
	// +optional
	Upgrade UpgradeStatus `json:"upgrade,omitempty,omitzero"`
	// poolsBehind are the MachineConfigPools of workers, the first 32, some of whose Nodes have not been brought to the release of the control plane yet: those of a pool that is paused, for example.
	// Told from an upgrade on until they have; omitted: none is known.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PoolsBehind []string `json:"poolsBehind,omitempty"`

	// lastRemediation is the last replacement of an unhealthy Machine.
	// +optional
	LastRemediation LastRemediationStatus `json:"lastRemediation,omitempty,omitzero"`

	// observedGeneration is the generation of the spec that the status was computed from.
	// +optional
	// +kubebuilder:validation:Minimum=1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// UpgradeStatus is how far the cluster is on its way to another release. Its Nodes are restarted at the end, one after the other.
type UpgradeStatus struct {
	// version is that release, with leading v.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Version string `json:"version,omitempty"`
	// percentage is how much of it is rolled out, as the cluster counts it, in full tens: 0 to 100. Omitted as long as the cluster does not tell.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Percentage *int32 `json:"percentage,omitempty"`
}

// LastRemediationStatus is the replacement of an unhealthy Machine.
type LastRemediationStatus struct {
	// machine was replaced.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Machine string `json:"machine,omitempty"`
	// time is when its deletion was decided.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"`
	// retryCount is how many Machines were replaced before it because of the same failure.
	// +required
	// +kubebuilder:validation:Minimum=0
	RetryCount *int32 `json:"retryCount,omitempty"`
}

// StatusVersion is a version and how many Machines run it.
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

// OpenshiftAssistedControlPlaneInitializationStatus is latched: what became true stays true.
// +kubebuilder:validation:MinProperties=1
type OpenshiftAssistedControlPlaneInitializationStatus struct {
	// controlPlaneInitialized is true once the cluster's API server has answered.
	// +optional
	ControlPlaneInitialized *bool `json:"controlPlaneInitialized,omitempty"`
}

// OpenshiftAssistedControlPlane installs an OpenShift cluster and keeps its control plane.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:storageversion
// +kubebuilder:resource:path=openshiftassistedcontrolplanes,scope=Namespaced,categories=cluster-api,shortName=oacp;oacps
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
// +kubebuilder:printcolumn:name="Cluster",type="string",JSONPath=".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']",description="Cluster"
// +kubebuilder:printcolumn:name="Version",type="string",JSONPath=".spec.version",description="Wanted OpenShift version"
// +kubebuilder:printcolumn:name="Runs",type="string",JSONPath=".status.version",description="Lowest OpenShift version of the Machines"
// +kubebuilder:printcolumn:name="Installation",type="string",JSONPath=".status.installation.progress",description="Phase and percentage of the installation"
// +kubebuilder:printcolumn:name="Installing For",type="date",priority=10,JSONPath=".status.installation.startTime",description="Time since all hosts were there, while the cluster is being installed"
// +kubebuilder:printcolumn:name="Available",type="string",JSONPath=".status.conditions[?(@.type=='Available')].status",description="True when the control plane serves"
// +kubebuilder:printcolumn:name="Desired",type="integer",JSONPath=".spec.replicas",description="Wanted Machines"
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description="Machines"
// +kubebuilder:printcolumn:name="Ready",type="integer",JSONPath=".status.readyReplicas",description="Ready Machines"
// +kubebuilder:printcolumn:name="Up-to-date",type="integer",priority=10,JSONPath=".status.upToDateReplicas",description="Up-to-date Machines"
// +kubebuilder:printcolumn:name="Initialized",type="boolean",priority=10,JSONPath=".status.initialization.controlPlaneInitialized",description="True once the API server has answered"
// +kubebuilder:printcolumn:name="Kubernetes",type="string",priority=10,JSONPath=".status.kubernetesVersion",description="Kubernetes version"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description="Time since creation"
// +kubebuilder:validation:XValidation:rule="has(self.spec.arbiter) == has(oldSelf.spec.arbiter)",message="spec.arbiter can be neither set nor removed: a control plane has an arbiter from the beginning, or never"
// +kubebuilder:validation:XValidation:rule="has(self.spec.fencing) == has(oldSelf.spec.fencing)",message="spec.fencing can be neither set nor removed: a cluster is one of two nodes with fencing from the beginning, or never"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.installation.phase.orValue('Pending') in ['Preparing', 'Installing', 'Finalizing']) || self.spec.?replicas == oldSelf.spec.?replicas",message="spec.replicas cannot change while the cluster is being installed"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (self.spec.?replicas.orValue(1) == 1) == (oldSelf.spec.?replicas.orValue(1) == 1)",message="an installed single-node cluster cannot become a multi-node one, nor the other way round"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.apiVIPs) == has(oldSelf.spec.config.apiVIPs) && (!has(self.spec.config.apiVIPs) || self.spec.config.apiVIPs == oldSelf.spec.config.apiVIPs) && has(self.spec.config.ingressVIPs) == has(oldSelf.spec.config.ingressVIPs) && (!has(self.spec.config.ingressVIPs) || self.spec.config.ingressVIPs == oldSelf.spec.config.ingressVIPs) && has(self.spec.config.machineNetwork) == has(oldSelf.spec.config.machineNetwork) && (!has(self.spec.config.machineNetwork) || self.spec.config.machineNetwork == oldSelf.spec.config.machineNetwork) && has(self.spec.config.networkType) == has(oldSelf.spec.config.networkType) && (!has(self.spec.config.networkType) || self.spec.config.networkType == oldSelf.spec.config.networkType) && has(self.spec.config.loadBalancer) == has(oldSelf.spec.config.loadBalancer) && (!has(self.spec.config.loadBalancer) || self.spec.config.loadBalancer == oldSelf.spec.config.loadBalancer))",message="apiVIPs, ingressVIPs, machineNetwork, networkType and loadBalancer cannot change once the installation has started"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.clusterName) == has(oldSelf.spec.config.clusterName) && (!has(self.spec.config.clusterName) || self.spec.config.clusterName == oldSelf.spec.config.clusterName))",message="clusterName cannot change once the installation has started"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.hostPrefix) == has(oldSelf.spec.config.hostPrefix) && (!has(self.spec.config.hostPrefix) || self.spec.config.hostPrefix == oldSelf.spec.config.hostPrefix) && has(self.spec.config.externalPlatform) == has(oldSelf.spec.config.externalPlatform) && (!has(self.spec.config.externalPlatform) || self.spec.config.externalPlatform == oldSelf.spec.config.externalPlatform) && has(self.spec.config.hyperthreading) == has(oldSelf.spec.config.hyperthreading) && (!has(self.spec.config.hyperthreading) || self.spec.config.hyperthreading == oldSelf.spec.config.hyperthreading))",message="hostPrefix, externalPlatform and hyperthreading cannot change once the installation has started"
// +kubebuilder:validation:XValidation:rule="oldSelf.?status.installation.phase.orValue('Pending') == 'Pending' || (has(self.spec.config.proxy) == has(oldSelf.spec.config.proxy) && (!has(self.spec.config.proxy) || self.spec.config.proxy == oldSelf.spec.config.proxy) && has(self.spec.config.diskEncryption) == has(oldSelf.spec.config.diskEncryption) && (!has(self.spec.config.diskEncryption) || self.spec.config.diskEncryption == oldSelf.spec.config.diskEncryption) && has(self.spec.config.capabilities) == has(oldSelf.spec.config.capabilities) && (!has(self.spec.config.capabilities) || self.spec.config.capabilities == oldSelf.spec.config.capabilities) && has(self.spec.config.installConfigOverride) == has(oldSelf.spec.config.installConfigOverride) && (!has(self.spec.config.installConfigOverride) || self.spec.config.installConfigOverride == oldSelf.spec.config.installConfigOverride) && has(self.spec.config.manifestsConfigMapRefs) == has(oldSelf.spec.config.manifestsConfigMapRefs) && (!has(self.spec.config.manifestsConfigMapRefs) || self.spec.config.manifestsConfigMapRefs == oldSelf.spec.config.manifestsConfigMapRefs) && has(self.spec.config.mastersSchedulable) == has(oldSelf.spec.config.mastersSchedulable) && (!has(self.spec.config.mastersSchedulable) || self.spec.config.mastersSchedulable == oldSelf.spec.config.mastersSchedulable) && has(self.spec.config.sshAuthorizedKey) == has(oldSelf.spec.config.sshAuthorizedKey) && (!has(self.spec.config.sshAuthorizedKey) || self.spec.config.sshAuthorizedKey == oldSelf.spec.config.sshAuthorizedKey) && has(self.spec.config.imageRegistryRef) == has(oldSelf.spec.config.imageRegistryRef) && (!has(self.spec.config.imageRegistryRef) || self.spec.config.imageRegistryRef == oldSelf.spec.config.imageRegistryRef))",message="the installation has started: change proxy, diskEncryption, capabilities, manifests, mastersSchedulable, ssh key and registry mirrors in the installed cluster instead"
type OpenshiftAssistedControlPlane struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the wanted control plane.
	// +required
	Spec OpenshiftAssistedControlPlaneSpec `json:"spec,omitempty,omitzero"`
	// status is what was observed of the control plane.
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
