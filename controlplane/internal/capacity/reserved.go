package capacity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Kernel and kubelet reserve a part of the hardware. If the annotations stated the whole hardware, the autoscaler would
// install a server for a Pod that needs nearly all of it. The Pod would not fit, and the autoscaler would repeat that.
//
// The part that the kubelet reserves (systemReserved) is the largest that OpenShift 4.12 or newer sets for workers. It is
// the default, or the result of automatic sizing in any version. The source is openshift/machine-config-operator, read at
// 7ff337a4 (August 2026), folder templates/common/_base/files. The defaults are in kubelet-auto-node-sizing-enabled.yaml.
// The script dynamic-system-reserved-calc.sh is in kubelet-auto-sizing.yaml. Since 3a1921c2 (February 2026) the script
// reserves less memory.
const (
	// defaultCPU is the default of OpenShift, and the minimum of the script, in thousandths of a CPU.
	defaultCPU = 500
	// firstCPU and nextCPU are the thousandths that version 2 of the script reserves of the first CPU and of each further
	// CPU. The sum is rounded to cpuStep. Version 1 reserves less.
	firstCPU, nextCPU, cpuStep = 60, 12, 10
	// defaultGibibytes is the default of OpenShift.
	defaultGibibytes = 1
	// restPercent is the percentage of memory that the script reserves above the last of memorySteps.
	restPercent = 2
	// evictionMebibytes is evictionHard of the kubelet, which OpenShift does not change: 100Mi of memory.
	evictionMebibytes = 100
)

// memorySteps lists which percentage of which steps of the memory the script reserved before 3a1921c2.
var memorySteps = []struct{ gibibytes, percent int64 }{{4, 25}, {4, 20}, {8, 10}, {112, 6}}

// The kernel has a descriptor of 64 bytes for each page of 4 KiB (struct page). In addition firmware and kernel take
// kernelMebibytes at most: an estimate without a source. Neither counts as memory of the Node.
const pagesShare, kernelMebibytes = 64, 512

// allocatableCPU returns the CPUs that Pods may request of a host, as a quantity.
func allocatableCPU(cpus int) string {
	reserved := firstCPU + nextCPU*(cpus-1)
	reserved = max(defaultCPU, (reserved+cpuStep/2)/cpuStep*cpuStep)
	return resource.NewMilliQuantity(int64(cpus)*1000-int64(reserved), resource.DecimalSI).String()
}

// allocatableMemory returns the memory that Pods may request of a host, as a quantity; at least 1Mi.
func allocatableMemory(mebibytes int64) string {
	kernel := mebibytes/pagesShare + kernelMebibytes
	return fmt.Sprintf("%dMi", max(1, mebibytes-kernel-evictionMebibytes-reservedGibibytes(mebibytes>>10)<<10))
}

// reservedGibibytes returns the part of the memory that the kubelet reserves, which the script rounds to whole GiB. The
// script starts from the whole GiB of the Node, which are not more than those of the host.
func reservedGibibytes(gibibytes int64) int64 {
	var percent int64
	for _, step := range memorySteps {
		within := min(gibibytes, step.gibibytes)
		percent += within * step.percent
		gibibytes -= within
	}
	return max(defaultGibibytes, (percent+gibibytes*restPercent+50)/100) //nolint:mnd // rounds
}
