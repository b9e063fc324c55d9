// Package metal3 is what the providers know of Metal3: kinds, annotations and labels of CAPM3 and the Bare Metal
// Operator, and what a host and its disks are recognised by. It computes; it has no client.
package metal3

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// MachineKind is the kind of the infrastructure machines behind which stands a BareMetalHost.
	MachineKind = "Metal3Machine"
	// HostAnnotation names, on a Metal3Machine, its BareMetalHost as namespace/name. CAPM3 puts it there when it chooses the host.
	HostAnnotation = "metal3.io/BareMetalHost"
	// HostUIDLabel is the label by which CAPM3 (v1.13, cloudProviderEnabled false) finds the Node of a host; its value
	// is the UID of the BareMetalHost.
	HostUIDLabel = "metal3.io/uuid"
)

// HadNode reports whether a Machine has, or had, a Node: its host was installed. With Metal3 the providerID is set only
// after the Node registered, and unlike the status it is moved and restored with the Machine; other infrastructure
// providers may set it beforehand.
func HadNode(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() || m.Spec.ProviderID != "" && m.Spec.InfrastructureRef.Kind == MachineKind
}

// NeedsNode reports whether an infrastructure machine has its host but not its Node. One of another kind than Metal3's
// is taken to have a host.
func NeedsNode(infra *unstructured.Unstructured) bool {
	providerID, _, _ := unstructured.NestedString(infra.Object, "spec", "providerID")
	_, hasHost := infra.GetAnnotations()[HostAnnotation]
	return infra.GetDeletionTimestamp().IsZero() && providerID == "" && (hasHost || infra.GetKind() != MachineKind)
}

// ConsumerOf is the Metal3Machine that a BareMetalHost is given to; its name is empty when there is none.
func ConsumerOf(host *Host) types.NamespacedName {
	ref := host.Spec.ConsumerRef
	if ref == nil || ref.Kind != MachineKind {
		return types.NamespacedName{}
	}
	if ref.Namespace == "" {
		return types.NamespacedName{Namespace: host.Namespace, Name: ref.Name}
	}
	return types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
}
