package metal3

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// RebootKind is the kind of the requests of a MachineHealthCheck to reboot the host of a Machine. The
	// object has the name of the Machine, which owns it.
	RebootKind = "Metal3Remediation"
	// rebootExhausted is the phase in which CAPM3 (v1.13) has rebooted as often as its template allows. It
	// reports that to the owner of the Machine only with the condition of Cluster API's older contract, which
	// Cluster API no longer reads. In the phase Failed CAPM3 has not rebooted, because the user switched the
	// host off.
	rebootExhausted = "Deleting machine"
)

// RebootPhase returns the phase of a reboot request.
func RebootPhase(reboot *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(reboot.Object, "status", "phase")
	return phase
}

// RebootFailed reports whether all reboots of the host of a Machine failed. A request for a former Machine of
// the same name does not count.
func RebootFailed(reboot *unstructured.Unstructured, machine types.UID) bool {
	owned := slices.ContainsFunc(reboot.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == machine })
	return owned && reboot.GetDeletionTimestamp() == nil && RebootPhase(reboot) == rebootExhausted
}
