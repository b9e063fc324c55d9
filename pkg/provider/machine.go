package provider

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// Metal3MachineKind is the kind of the infrastructure machines behind which stands a BareMetalHost.
const Metal3MachineKind = "Metal3Machine"

// HadNode tells whether a Machine has, or had, a Node: its host was installed. With Metal3 the providerID is set only after the Node registered, and
// unlike the status it is moved and restored with the Machine; other infrastructure providers may set it beforehand.
func HadNode(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() || m.Spec.ProviderID != "" && m.Spec.InfrastructureRef.Kind == Metal3MachineKind
}
