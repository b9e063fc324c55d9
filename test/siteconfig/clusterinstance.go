package siteconfig

import (
	"fmt"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// ClusterInstance defines a cluster to be installed, and its hosts.
type ClusterInstance struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec Spec `json:"spec"`
}

// Spec is what templates have as .Spec.
type Spec struct {
	ClusterName            string                        `json:"clusterName"`
	ClusterType            ClusterType                   `json:"clusterType,omitempty"`
	BaseDomain             string                        `json:"baseDomain"`
	ClusterImageSetNameRef string                        `json:"clusterImageSetNameRef"`
	PullSecretRef          corev1.LocalObjectReference   `json:"pullSecretRef"`
	SSHPublicKey           string                        `json:"sshPublicKey,omitempty"`
	ApiVIPs                []string                      `json:"apiVIPs,omitempty"`
	IngressVIPs            []string                      `json:"ingressVIPs,omitempty"`
	HoldInstallation       bool                          `json:"holdInstallation,omitempty"`
	AdditionalNTPSources   []string                      `json:"additionalNTPSources,omitempty"`
	MachineNetwork         []Network                     `json:"machineNetwork,omitempty"`
	ClusterNetwork         []ClusterNetwork              `json:"clusterNetwork,omitempty"`
	ServiceNetwork         []Network                     `json:"serviceNetwork,omitempty"`
	NetworkType            string                        `json:"networkType,omitempty"`
	PlatformType           PlatformType                  `json:"platformType,omitempty"`
	ExtraAnnotations       map[string]map[string]string  `json:"extraAnnotations,omitempty"`
	ExtraLabels            map[string]map[string]string  `json:"extraLabels,omitempty"`
	InstallConfigOverrides string                        `json:"installConfigOverrides,omitempty"`
	IgnitionConfigOverride string                        `json:"ignitionConfigOverride,omitempty"`
	DiskEncryption         *DiskEncryption               `json:"diskEncryption,omitempty"`
	Proxy                  *aiv1beta1.Proxy              `json:"proxy,omitempty"`
	ExtraManifestsRefs     []corev1.LocalObjectReference `json:"extraManifestsRefs,omitempty"`
	SuppressedManifests    []string                      `json:"suppressedManifests,omitempty"`
	CPUPartitioning        CPUPartitioning               `json:"cpuPartitioningMode,omitempty"`
	CPUArchitecture        CPUArchitecture               `json:"cpuArchitecture,omitempty"`
	CaBundleRef            *corev1.LocalObjectReference  `json:"caBundleRef,omitempty"`
	TemplateRefs           []Reference                   `json:"templateRefs"`
	Nodes                  []Node                        `json:"nodes"`
}

// The operator defines types for these strings as well: functions of templates distinguish them from strings.
type (
	// ClusterType is SNO, HighlyAvailable, HighlyAvailableArbiter or HostedControlPlane.
	ClusterType string
	// PlatformType is that of the AgentClusterInstall.
	PlatformType string
	// CPUPartitioning is None or AllNodes.
	CPUPartitioning string
	// CPUArchitecture is x86_64, aarch64 or, of a cluster, multi.
	CPUArchitecture string
	// IronicInspect is empty or disabled.
	IronicInspect string
)

// Network is one CIDR.
type Network struct {
	CIDR string `json:"cidr"`
}

// ClusterNetwork is a network of Pods.
type ClusterNetwork struct {
	CIDR       string `json:"cidr"`
	HostPrefix int32  `json:"hostPrefix,omitempty"`
}

// DiskEncryption encrypts the disks of all hosts.
type DiskEncryption struct {
	Type string `json:"type,omitempty"`
	Tang []Tang `json:"tang,omitempty"`
}

// Tang is a server that gives out the key of a disk.
type Tang struct {
	URL        string `json:"url,omitempty"`
	Thumbprint string `json:"thumbprint,omitempty"`
}

// Reference is an object of a kind that is known.
type Reference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Node is one host, which templates for nodes have as .SpecialVars.CurrentNode.
type Node struct {
	HostName               string                          `json:"hostName"`
	Role                   string                          `json:"role,omitempty"`
	BmcAddress             string                          `json:"bmcAddress"`
	BmcCredentialsName     corev1.LocalObjectReference     `json:"bmcCredentialsName"`
	BootMACAddress         string                          `json:"bootMACAddress"`
	BootMode               metal3api.BootMode              `json:"bootMode,omitempty"`
	AutomatedCleaningMode  metal3api.AutomatedCleaningMode `json:"automatedCleaningMode,omitempty"`
	IronicInspect          IronicInspect                   `json:"ironicInspect,omitempty"`
	RootDeviceHints        *metal3api.RootDeviceHints      `json:"rootDeviceHints,omitempty"`
	NodeNetwork            *aiv1beta1.NMStateConfigSpec    `json:"nodeNetwork,omitempty"`
	NodeLabels             map[string]string               `json:"nodeLabels,omitempty"`
	HostRef                *Reference                      `json:"hostRef,omitempty"`
	CPUArchitecture        CPUArchitecture                 `json:"cpuArchitecture,omitempty"`
	InstallerArgs          string                          `json:"installerArgs,omitempty"`
	IgnitionConfigOverride string                          `json:"ignitionConfigOverride,omitempty"`
	ExtraAnnotations       map[string]map[string]string    `json:"extraAnnotations,omitempty"`
	ExtraLabels            map[string]map[string]string    `json:"extraLabels,omitempty"`
	SuppressedManifests    []string                        `json:"suppressedManifests,omitempty"`
	TemplateRefs           []Reference                     `json:"templateRefs"`
}

// Load reads a ClusterInstance, and completes it as the API server does.
func Load(content []byte) (*ClusterInstance, error) {
	instance := &ClusterInstance{}
	if err := yaml.UnmarshalStrict(content, instance); err != nil {
		return nil, fmt.Errorf("cannot read the ClusterInstance: %w", err)
	}
	spec := &instance.Spec
	fallBack(&spec.NetworkType, "OVNKubernetes")
	fallBack(&spec.CPUPartitioning, "None")
	fallBack(&spec.CPUArchitecture, "x86_64")
	for i := range spec.Nodes {
		node := &spec.Nodes[i]
		fallBack(&node.Role, "master")
		fallBack(&node.BootMode, metal3api.UEFI)
		fallBack(&node.AutomatedCleaningMode, metal3api.CleaningModeDisabled)
	}
	return instance, nil
}

func fallBack[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}
