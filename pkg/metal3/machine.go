// Package metal3 holds the contract with Metal3: kinds, annotations and labels of CAPM3 and the Bare Metal
// Operator, and how hosts and disks are identified. It has no client.
package metal3

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// MachineKind is the kind of infra machines that use BareMetalHosts.
	MachineKind = "Metal3Machine"
	// HostAnnotation names, on a Metal3Machine, its BareMetalHost as namespace/name. CAPM3 sets it when it
	// chooses the host.
	HostAnnotation = "metal3.io/BareMetalHost"
	// HostUIDLabel is the label by which CAPM3 (v1.13, cloudProviderEnabled false) finds the Node of a host.
	// Its value is the UID of the BareMetalHost.
	HostUIDLabel = "metal3.io/uuid"
)

// HadNode reports whether a Machine has, or had, a Node: its host was installed. Metal3 sets the providerID
// only after the Node registered, and unlike the status it is moved and restored with the Machine. Other
// infrastructure providers may set it earlier.
func HadNode(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() || m.Spec.ProviderID != "" && m.Spec.InfrastructureRef.Kind == MachineKind
}

// NeedsNode reports whether an infra machine has its host but not its Node. An infra machine of another kind
// than Metal3Machine is assumed to have a host.
func NeedsNode(infra *unstructured.Unstructured) bool {
	providerID, _, _ := unstructured.NestedString(infra.Object, "spec", "providerID")
	_, hasHost := infra.GetAnnotations()[HostAnnotation]
	return infra.GetDeletionTimestamp().IsZero() && providerID == "" && (hasHost || infra.GetKind() != MachineKind)
}

// ConsumerOf returns the name of the Metal3Machine that uses a BareMetalHost; it is empty if there is none.
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
