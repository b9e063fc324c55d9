package assisted

import (
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InfraEnv is an InfraEnv with fields that are newer than the required API of assisted-service. Clients decode
// InfraEnvs into this type, and apply objects of this type. The API's own type would drop the new fields.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type InfraEnv struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfraEnvSpec             `json:"spec,omitempty"`
	Status aiv1beta1.InfraEnvStatus `json:"status,omitempty"`
}

// InfraEnvSpec adds fields to the spec of the API's own type.
//
// +kubebuilder:object:generate=true
type InfraEnvSpec struct {
	aiv1beta1.InfraEnvSpec `json:",inline"`

	// NTPSources are the host names or IP addresses of the only NTP servers that hosts use. They exclude
	// AdditionalNTPSources.
	NTPSources []string `json:"ntpSources,omitempty"`
	// NetworkDiscoveryDelaySeconds is how long a host that boots a minimal ISO waits for its network
	// interfaces. After that its static networks are applied by their MAC addresses.
	NetworkDiscoveryDelaySeconds *int64 `json:"networkDiscoveryDelaySeconds,omitempty"`
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

// AddToScheme registers the InfraEnv of this package, and the other kinds of the group from the API of
// assisted-service.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(aiv1beta1.GroupVersion,
		&InfraEnv{}, &InfraEnvList{}, &aiv1beta1.Agent{}, &aiv1beta1.AgentList{}, &aiv1beta1.NMStateConfig{}, &aiv1beta1.NMStateConfigList{},
	)
	metav1.AddToGroupVersion(scheme, aiv1beta1.GroupVersion)
	return nil
}
