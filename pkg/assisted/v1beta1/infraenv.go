package v1beta1

import (
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageCreatedCondition is true if the discovery image of an InfraEnv can be downloaded. It is unknown while its
// cluster is missing.
const ImageCreatedCondition conditionsv1.ConditionType = "ImageCreated"

// InfraEnv is a discovery image and the hosts that boot it.
//
// +kubebuilder:object:root=true
type InfraEnv struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfraEnvSpec   `json:"spec,omitempty"`
	Status InfraEnvStatus `json:"status,omitempty"`
}

// InfraEnvList is a list of InfraEnvs.
//
// +kubebuilder:object:root=true
type InfraEnvList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []InfraEnv `json:"items"`
}

// InfraEnvSpec is the content of a discovery image. An assisted-service from before August 2026 lacks some of the
// fields: its API server refuses them.
type InfraEnvSpec struct {
	Proxy *Proxy `json:"proxy,omitempty"`
	// AdditionalNTPSources are host names or IP addresses of NTP servers, in addition to those of DHCP.
	AdditionalNTPSources []string `json:"additionalNTPSources,omitempty"`
	// NTPSources are the host names or IP addresses of the only NTP servers that hosts use. They exclude
	// AdditionalNTPSources.
	NTPSources       []string `json:"ntpSources,omitempty"`
	SSHAuthorizedKey string   `json:"sshAuthorizedKey,omitempty"`
	// PullSecretRef is required.
	PullSecretRef *corev1.LocalObjectReference `json:"pullSecretRef,omitempty"`
	// AgentLabels are set on each Agent when it is created.
	AgentLabels map[string]string `json:"agentLabels,omitempty"`
	// NMStateConfigLabelSelector selects the static networks of the hosts. An empty selector selects none, and is
	// written: it withdraws a former selector.
	NMStateConfigLabelSelector metav1.LabelSelector `json:"nmStateConfigLabelSelector,omitempty"`
	// ClusterRef binds each host to a cluster when the host registers. It is immutable.
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`
	// IgnitionConfigOverride is an ignition in JSON, which is merged into the ignition of the discovery image.
	IgnitionConfigOverride string `json:"ignitionConfigOverride,omitempty"`
	// CpuArchitecture is immutable. Default: x86_64.
	CpuArchitecture string `json:"cpuArchitecture,omitempty"`
	// KernelArguments apply when the discovery image boots, not to the installed host.
	KernelArguments []KernelArgument `json:"kernelArguments,omitempty"`
	// AdditionalTrustBundle are certificates in PEM, which the installed cluster trusts as well.
	AdditionalTrustBundle string `json:"additionalTrustBundle,omitempty"`
	// OSImageVersion is the OpenShift minor version of the image. Default: that of the cluster, or the newest.
	OSImageVersion    string                                    `json:"osImageVersion,omitempty"`
	MirrorRegistryRef *hiveext.MirrorRegistryConfigMapReference `json:"mirrorRegistryRef,omitempty"`
	ImageType         ImageType                                 `json:"imageType,omitempty"`
	// NetworkDiscoveryDelaySeconds is how long a host that boots a minimal ISO waits for its network
	// interfaces. After that its static networks are applied by their MAC addresses.
	NetworkDiscoveryDelaySeconds *int64 `json:"networkDiscoveryDelaySeconds,omitempty"`
}

// ImageType is the type of a discovery ISO.
type ImageType string

// ImageTypeFullIso is an ISO that needs no download when it boots.
const ImageTypeFullIso ImageType = "full-iso"

// KernelArgument is a change of the kernel's command line.
type KernelArgument struct {
	// Operation is append, replace or delete.
	Operation string `json:"operation,omitempty"`
	Value     string `json:"value,omitempty"`
}

// Proxy is the proxy of the hosts.
type Proxy struct {
	HTTPProxy  string `json:"httpProxy,omitempty"`
	HTTPSProxy string `json:"httpsProxy,omitempty"`
	// NoProxy is a list of domains and networks, separated by commas.
	NoProxy string `json:"noProxy,omitempty"`
}

// InfraEnvStatus is the state of a discovery image. Its URLs may contain credentials.
type InfraEnvStatus struct {
	ISODownloadURL    string                   `json:"isoDownloadURL,omitempty"`
	CreatedTime       *metav1.Time             `json:"createdTime,omitempty"`
	Conditions        []conditionsv1.Condition `json:"conditions,omitempty"`
	InfraEnvDebugInfo InfraEnvDebugInfo        `json:"debugInfo,omitempty"`
	BootArtifacts     BootArtifacts            `json:"bootArtifacts,omitempty"`
}

// InfraEnvDebugInfo are further URLs of a discovery image.
type InfraEnvDebugInfo struct {
	// StaticNetworkDownloadURL is empty if the image contains no static networks.
	StaticNetworkDownloadURL string `json:"staticNetworkDownloadURL,omitempty"`
}

// BootArtifacts are the files of a discovery image.
type BootArtifacts struct {
	DiscoveryIgnitionURL string `json:"discoveryIgnitionURL,omitempty"`
}
