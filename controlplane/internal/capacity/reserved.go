package capacity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Kernel and kubelet reserve a part of the hardware. If the annotations stated the whole hardware, the autoscaler would
// install a server for a Pod that needs nearly all of it. The Pod would not fit, and the autoscaler would repeat that.
// The reserved part is that of OpenShift's automatic sizing, the largest of its defaults (machine-config-operator,
// templates/common/_base/files/kubelet-auto-sizing.yaml).
const (
	// minReservedCPU is the default of OpenShift without automatic sizing, in thousandths of a CPU.
	minReservedCPU = 500
	// firstReservedCPU and nextReservedCPU are reserved of the first CPU and of each further CPU.
	firstReservedCPU = 60
	nextReservedCPU  = 12
	// kernelPercent of the memory is not available to the operating system: firmware, and the kernel's page structures.
	kernelPercent = 2
	// evictionMebibytes is the free memory below which the kubelet evicts Pods.
	evictionMebibytes = 100
)

// reservedMemory lists which percentage is reserved of which part of the memory. Above the last part it is restPercent.
var reservedMemory = []struct{ mebibytes, percent int64 }{{4 << 10, 25}, {4 << 10, 20}, {8 << 10, 10}, {112 << 10, 6}}

const restPercent = 2

// allocatableCPU returns the CPUs that Pods may request of a host, as a quantity.
func allocatableCPU(cpus int) string {
	reserved := max(minReservedCPU, firstReservedCPU+nextReservedCPU*(cpus-1))
	return resource.NewMilliQuantity(int64(cpus)*1000-int64(reserved), resource.DecimalSI).String()
}

// allocatableMemory returns the memory that Pods may request of a host, as a quantity; at least 1Mi.
func allocatableMemory(mebibytes int64) string {
	reserved, rest := mebibytes*kernelPercent/100+evictionMebibytes, mebibytes
	for _, part := range reservedMemory {
		within := min(rest, part.mebibytes)
		reserved += within * part.percent / 100
		rest -= within
	}
	reserved += rest * restPercent / 100
	return fmt.Sprintf("%dMi", max(1, mebibytes-reserved))
}
