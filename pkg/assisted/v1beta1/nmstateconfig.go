package v1beta1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NMStateConfig is the static network of a host.
//
// +kubebuilder:object:root=true
type NMStateConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NMStateConfigSpec `json:"spec,omitempty"`
}

// NMStateConfigList is a list of NMStateConfigs.
//
// +kubebuilder:object:root=true
type NMStateConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NMStateConfig `json:"items"`
}

// NMStateConfigSpec is a static network, and how its host is recognized.
type NMStateConfigSpec struct {
	// Interfaces are the interfaces that Config names. The host is the one that has any of the MAC addresses.
	Interfaces []*Interface `json:"interfaces,omitempty"`
	// Config is a state of nmstate as JSON.
	Config json.RawMessage `json:"config,omitempty"`
}

// Interface is a network interface.
type Interface struct {
	Name       string `json:"name"`
	MacAddress string `json:"macAddress"`
}
