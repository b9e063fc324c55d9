package assisted

import (
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// InfraEnv is an InfraEnv with the fields that assisted-service has had since its API with which these providers are
// built. What the API server sends is decoded into it, and what is applied is made of it: the API's own type would lose
// them.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type InfraEnv struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   InfraEnvSpec             `json:"spec,omitempty"`
	Status aiv1beta1.InfraEnvStatus `json:"status,omitempty"`
}

// InfraEnvSpec is what hosts are discovered with.
//
// +kubebuilder:object:generate=true
type InfraEnvSpec struct {
	aiv1beta1.InfraEnvSpec `json:",inline"`

	// NTPSources are host names or IP addresses of the only NTP servers that hosts use; they exclude AdditionalNTPSources.
	NTPSources []string `json:"ntpSources,omitempty"`
	// NetworkDiscoveryDelaySeconds is for how long a host that boots a minimal ISO waits for its network interfaces
	// before its static networks are applied by their MAC addresses.
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

// AddToScheme makes clients take InfraEnvs for those of this package; the other kinds of the group that are read are
// those of assisted-service's API.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(aiv1beta1.GroupVersion,
		&InfraEnv{}, &InfraEnvList{}, &aiv1beta1.Agent{}, &aiv1beta1.AgentList{}, &aiv1beta1.NMStateConfig{}, &aiv1beta1.NMStateConfigList{},
	)
	metav1.AddToGroupVersion(scheme, aiv1beta1.GroupVersion)
	return nil
}
