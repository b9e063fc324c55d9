// Package sample holds the objects of one Machine as other components create them, for tests.
package sample

import (
	"maps"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

const (
	// Namespace is the namespace of all objects.
	Namespace = "lab"
	// MachineUID is the UID of the Machine.
	MachineUID = "machine-uid"
	// BootMAC is the boot MAC address of the BareMetalHost.
	BootMAC = "52:54:00:00:00:02"
)

// Metal3Machine returns the infra machine of the Machine. Its image has a format and the placeholder of a
// template.
func Metal3Machine(format string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
		"kind":       "Metal3Machine",
		"metadata": map[string]any{"namespace": Namespace, "name": "m", "uid": "metal3-uid", "ownerReferences": []any{map[string]any{
			"apiVersion": clusterv1.GroupVersion.String(), "kind": "Machine", "name": "m", "uid": MachineUID, "controller": true,
		}}},
		"spec": map[string]any{"image": map[string]any{"url": "http://placeholder.invalid/live.iso", "checksum": "x", "diskFormat": format}},
	}}
}

// BareMetalHost returns the BareMetalHost of the Metal3Machine, before an inspection.
func BareMetalHost() *metal3.Host {
	return &metal3.Host{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "rack1-u7", UID: "bmh-uid"},
		Spec: metal3.HostSpec{
			BootMACAddress: BootMAC,
			ConsumerRef:    &metal3.Consumer{Kind: "Metal3Machine", Namespace: Namespace, Name: "m"},
		},
	}
}

// Agent returns an Agent as assisted-service creates it for a discovered host (recorded).
func Agent(name, infraEnv, mac string) *aiv1beta1.Agent {
	return &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace,
			Name:      name,
			UID:       types.UID("uid-" + name),
			Labels:    map[string]string{aiv1beta1.InfraEnvNameLabel: infraEnv},
		},
		Status: aiv1beta1.AgentStatus{
			Inventory: aiv1beta1.HostInventory{
				Hostname: "m2",
				Cpu:      aiv1beta1.HostCPU{Count: 16},
				Memory:   aiv1beta1.HostMemory{PhysicalBytes: 32 << 30, UsableBytes: 32 << 30},
				Interfaces: []aiv1beta1.HostInterface{
					{MacAddress: mac},
				},
				Disks: []aiv1beta1.HostDisk{{
					ID: "/dev/disk/by-id/wwn-0x525400000002", Path: "/dev/sda", DriveType: "SSD", SizeBytes: 120 << 30,
					InstallationEligibility: aiv1beta1.HostInstallationEligibility{Eligible: true},
				}},
			},
			DebugInfo: aiv1beta1.DebugInfo{State: "known-unbound"},
			Conditions: []conditionsv1.Condition{
				{Type: aiv1beta1.SpecSyncedCondition, Status: corev1.ConditionTrue, Reason: "SyncOK"},
				{Type: aiv1beta1.BoundCondition, Status: corev1.ConditionFalse, Reason: "Unbound"},
			},
		},
	}
}

// OtherBootMAC is the boot MAC address of another server than that of BareMetalHost.
const OtherBootMAC = "02:00:00:00:00:66"

// ForeignHost is a BareMetalHost of another namespace without a consumer, for a server of its own.
func ForeignHost(state string) *metal3.Host {
	host := BareMetalHost()
	host.Namespace, host.Name, host.UID = "site-7", "node-0", "foreign-uid"
	host.Spec.BootMACAddress, host.Spec.ConsumerRef = OtherBootMAC, nil
	host.Spec.BMC.Address = "idrac-virtualmedia://10.0.0.7:443/redfish/v1/Systems/System.Embedded.1/"
	host.Status.Provisioning.State = state
	return host
}

// Claimants are BareMetalHosts of other namespaces for the server of the Machine, which show that the server is in use.
func Claimants() map[string]*metal3.Host {
	consumed, detachedHost, external := ForeignHost("available"), ForeignHost("available"), ForeignHost("")
	consumed.Spec.ConsumerRef = &metal3.Consumer{Kind: "HostClaim", Name: "x"}
	detachedHost.Annotations = map[string]string{metal3api.DetachedAnnotation: "assisted-service-controller"}
	external.Spec.ExternallyProvisioned = true
	states := map[string]*metal3.Host{
		"provisioned": ForeignHost("provisioned"), "provisioning": ForeignHost("provisioning"),
		"externally provisioned":                    ForeignHost("externally provisioned"),
		"externally provisioned, not inspected yet": external, "consumed": consumed, "detached": detachedHost,
	}
	found := maps.Clone(states)
	for state, host := range states {
		same := host.DeepCopy()
		same.Spec.BootMACAddress, same.Spec.BMC.Address = "52-54-00-00-00-02", "ipmi://10.0.0.99"
		found[state+", same boot MAC address"] = same
	}
	return found
}
