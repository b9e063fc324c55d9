// Package v1beta1 is the API of the infrastructure provider in package plainmetal.
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// GroupVersion is the group and version of the objects in this package.
var GroupVersion = schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}

// AddToScheme adds the types of this package to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&PlainMetalCluster{}, &PlainMetalClusterList{},
		&PlainMetalMachine{}, &PlainMetalMachineList{},
		&PlainMetalMachineTemplate{}, &PlainMetalMachineTemplateList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// PlainMetalCluster is the infrastructure of a cluster. Nothing is created for it: the user sets the endpoint of the
// API.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=plainmetalclusters,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
type PlainMetalCluster struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the user wants.
	// +optional
	Spec PlainMetalClusterSpec `json:"spec,omitempty,omitzero"`
	// status is what the provider did.
	// +optional
	Status PlainMetalClusterStatus `json:"status,omitempty,omitzero"`
}

// PlainMetalClusterSpec is what the user wants of the infrastructure of a cluster.
type PlainMetalClusterSpec struct {
	// controlPlaneEndpoint is where the API of the cluster is to be found.
	// +optional
	ControlPlaneEndpoint clusterv1.APIEndpoint `json:"controlPlaneEndpoint,omitempty,omitzero"`
}

// PlainMetalClusterStatus is what the provider did for a cluster.
type PlainMetalClusterStatus struct {
	// conditions report the blocker.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// initialization is what Cluster API waits for.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
}

// Initialization is what Cluster API waits for.
type Initialization struct {
	// provisioned is true once the infrastructure exists.
	// +optional
	Provisioned *bool `json:"provisioned,omitempty"`
}

// GetConditions returns the conditions of the object.
func (c *PlainMetalCluster) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (c *PlainMetalCluster) SetConditions(conditions []metav1.Condition) {
	c.Status.Conditions = conditions
}

// PlainMetalClusterList is a list of PlainMetalCluster.
// +kubebuilder:object:root=true
type PlainMetalClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlainMetalCluster `json:"items"`
}

// PlainMetalMachine is a server that is booted from a disk image with user data.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=plainmetalmachines,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
type PlainMetalMachine struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what the user wants.
	// +optional
	Spec PlainMetalMachineSpec `json:"spec,omitempty,omitzero"`
	// status is what the provider did.
	// +optional
	Status PlainMetalMachineStatus `json:"status,omitempty,omitzero"`
}

// PlainMetalMachineSpec is what the user wants of a server.
type PlainMetalMachineSpec struct {
	// providerID names the server. The provider sets it when it takes one, before that is booted.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProviderID string `json:"providerID,omitempty"`
	// image is the URL of the disk image.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Image string `json:"image,omitempty"`
}

// PlainMetalMachineStatus is what the provider did for a Machine.
type PlainMetalMachineStatus struct {
	// conditions report the blocker.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// initialization is what Cluster API waits for.
	// +optional
	Initialization Initialization `json:"initialization,omitempty,omitzero"`
	// addresses are those of the server.
	// +optional
	// +listType=atomic
	Addresses []clusterv1.MachineAddress `json:"addresses,omitempty"`
}

// GetConditions returns the conditions of the object.
func (m *PlainMetalMachine) GetConditions() []metav1.Condition { return m.Status.Conditions }

// SetConditions replaces the conditions of the object.
func (m *PlainMetalMachine) SetConditions(conditions []metav1.Condition) {
	m.Status.Conditions = conditions
}

// PlainMetalMachineList is a list of PlainMetalMachine.
// +kubebuilder:object:root=true
type PlainMetalMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlainMetalMachine `json:"items"`
}

// PlainMetalMachineTemplate is the template of PlainMetalMachines.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=plainmetalmachinetemplates,scope=Namespaced,categories=cluster-api
// +kubebuilder:metadata:labels="cluster.x-k8s.io/v1beta2=v1beta1"
type PlainMetalMachineTemplate struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec holds the template.
	// +required
	Spec PlainMetalMachineTemplateSpec `json:"spec,omitempty,omitzero"`
}

// PlainMetalMachineTemplateSpec holds the template.
type PlainMetalMachineTemplateSpec struct {
	// template is the template of each PlainMetalMachine.
	// +required
	Template PlainMetalMachineTemplateResource `json:"template,omitempty,omitzero"`
}

// PlainMetalMachineTemplateResource is the template of each PlainMetalMachine.
type PlainMetalMachineTemplateResource struct {
	// metadata of the created objects.
	// +optional
	ObjectMeta clusterv1.ObjectMeta `json:"metadata,omitempty,omitzero"`
	// spec of the created objects.
	// +required
	Spec PlainMetalMachineSpec `json:"spec,omitempty,omitzero"`
}

// PlainMetalMachineTemplateList is a list of PlainMetalMachineTemplate.
// +kubebuilder:object:root=true
type PlainMetalMachineTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlainMetalMachineTemplate `json:"items"`
}
