package metal3

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HardwareDataKind is the kind of a HardwareData.
const HardwareDataKind = "HardwareData"

// HardwareDataCRD is the name of the CustomResourceDefinition of HardwareData.
const HardwareDataCRD = "hardwaredata.metal3.io"

// HardwareData holds the inspected hardware of the BareMetalHost with the same namespace and name. It is reduced to the
// fields that are read. Never write a HardwareData: it would remove all other fields.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type HardwareData struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HardwareDataSpec `json:"spec,omitempty"`
}

// HardwareDataSpec is the result of the last inspection.
//
// +kubebuilder:object:generate=true
type HardwareDataSpec struct {
	Hardware *Hardware `json:"hardware,omitempty"`
}

// HardwareDataList is a list of HardwareData.
//
// +kubebuilder:object:generate=true
// +kubebuilder:object:root=true
type HardwareDataList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HardwareData `json:"items"`
}
