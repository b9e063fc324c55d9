package capacity

import (
	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// sizeOf returns the inspected CPUs and memory of a host. It prefers the HardwareData of the host, which may be nil:
// the Bare Metal Operator deprecates the field of the BareMetalHost. For hardware that a user declared in the
// annotation inspect.metal3.io/hardwaredetails, the operator sets only the field. The HardwareData of an inspection
// before the declaration wins nevertheless, as in the operator. It returns false if CPUs or memory are unknown.
func sizeOf(host *metal3.Host, data *metal3.HardwareData) (cpus int, mebibytes int64, known bool) {
	hardware := host.Status.HardwareDetails
	if data != nil && data.Spec.Hardware != nil {
		hardware = data.Spec.Hardware
	}
	if hardware == nil || hardware.CPU.Count <= 0 || hardware.RAMMebibytes <= 0 {
		return 0, 0, false
	}
	return hardware.CPU.Count, int64(hardware.RAMMebibytes), true
}

// NotInspected reports whether the Bare Metal Operator has not inspected a host yet. CAPM3 does not choose the host
// before the end of the inspection.
func NotInspected(host *metal3.Host) bool {
	switch metal3api.ProvisioningState(host.Status.Provisioning.State) {
	case metal3api.StateNone, metal3api.StateUnmanaged, metal3api.StateRegistering, metal3api.StateMatchProfile, metal3api.StateInspecting:
		return true
	default:
		return false
	}
}
