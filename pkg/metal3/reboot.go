package metal3

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// RebootKind is the kind by which a MachineHealthCheck has the host of a Machine rebooted. Its object has the name
	// of the Machine, and is owned by it.
	RebootKind = "Metal3Remediation"
	// rebootGivenUp is the phase in which CAPM3 (v1.13) has tried as often as its template says. It tells the owner of
	// the Machine only by the condition of Cluster API's older contract, which Cluster API does not look at any more.
	// In the phase Failed it has not tried: the user switched the host off.
	rebootGivenUp = "Deleting machine"
)

// RebootPhase is how far the reboots of a host are.
func RebootPhase(reboot *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(reboot.Object, "status", "phase")
	return phase
}

// RebootFailed reports whether the host of a Machine was rebooted in vain. What is left of a former Machine of the same name says nothing.
func RebootFailed(reboot *unstructured.Unstructured, machine types.UID) bool {
	owned := slices.ContainsFunc(reboot.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == machine })
	return owned && reboot.GetDeletionTimestamp() == nil && RebootPhase(reboot) == rebootGivenUp
}
