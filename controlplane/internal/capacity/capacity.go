// Package capacity decides which capacity a MachineDeployment states to the cluster autoscaler, so that the autoscaler
// can scale it from zero. It has no client.
package capacity

import (
	"fmt"

	"github.com/dustin/go-humanize/english"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// The annotations of a MachineDeployment that the Cluster API provider of the cluster autoscaler reads as the
// allocatable resources of a Node (cloudprovider/clusterapi/clusterapi_utils.go). The autoscaler needs both to scale
// from zero.
const (
	CPUAnnotation    = "capacity.cluster-autoscaler.kubernetes.io/cpu"
	MemoryAnnotation = "capacity.cluster-autoscaler.kubernetes.io/memory"
)

// Annotations are the annotations that the provider states.
var Annotations = []string{CPUAnnotation, MemoryAnnotation}

// Decision is the capacity of the Machines of a MachineDeployment.
type Decision struct {
	// Capacity holds the annotations to state; nil if the capacity is not known.
	Capacity map[string]string
	// Message is for users: of which hosts the capacity is, or why it is not known.
	Message string
}

// unknown returns the decision to state nothing.
func unknown(format string, args ...any) Decision {
	return Decision{Message: "Capacity unknown: " + fmt.Sprintf(format, args...)}
}

// manually is the advice for hosts whose capacity the provider cannot determine.
const manually = "set the annotations " + CPUAnnotation + " and " + MemoryAnnotation + " yourself"

// UnknownValue is the decision for a value of the annotation that this version does not know.
func UnknownValue(value string) Decision {
	return unknown("annotation %s has the value %q. Set %s, or remove the annotation", controlplanev1.AutoscalingCapacityAnnotation,
		bound.Value(value), controlplanev1.AutoscalingCapacityFromHardwareData)
}

// OtherInfrastructure is the decision for Machines that use no BareMetalHosts.
func OtherInfrastructure(kind string) Decision {
	return unknown("only a %s selects BareMetalHosts, and the infrastructure template of this MachineDeployment is a %s. Remove the "+
		"annotation %s, and %s", metal3.TemplateKind, bound.Value(kind), controlplanev1.AutoscalingCapacityAnnotation, manually)
}

// NoTemplate is the decision for a template that does not exist.
func NoTemplate(name string) Decision {
	return unknown("%s %s does not exist. Create it, or correct spec.template.spec.infrastructureRef", metal3.TemplateKind, name)
}

// NoOperator is the decision for a hub without the Bare Metal Operator.
func NoOperator() Decision {
	return unknown("the hub has no CustomResourceDefinition %s. Install the Bare Metal Operator", metal3.HardwareDataCRD)
}

// hostSize is the size of a host.
type hostSize struct {
	name string
	// cpus is the number of logical CPUs.
	cpus int
	// mebibytes is the size of the memory.
	mebibytes int64
}

// Of returns the capacity of the smallest host that a Metal3MachineTemplate selects. Hosts in use count: they are free
// when their Machines are deleted. hosts are all BareMetalHosts of the namespace, data their HardwareData by name.
//
// The caches of both kinds may differ by milliseconds. If a host is known to be inspected before its HardwareData is
// known, the capacity is unknown until then, and is withdrawn. A host whose status.hardware is set is not affected.
func Of(template *unstructured.Unstructured, hosts []*metal3.Host, data map[string]*metal3.HardwareData) Decision {
	selector, err := metal3.HostSelectorOfTemplate(template)
	if err != nil {
		return unknown("%s %s is invalid: %s. Correct the selector", template.GetKind(), template.GetName(), bound.Cause(err.Error()))
	}
	var (
		sizes           []hostSize
		pending, hidden []string
	)
	for _, host := range hosts {
		if metal3.NeverChosen(host) || !selector.Matches(labels.Set(host.Labels)) {
			continue
		}
		cpus, mebibytes, known := sizeOf(host, data[host.Name])
		switch {
		case known:
			sizes = append(sizes, hostSize{host.Namespace + "/" + host.Name, cpus, mebibytes})
		case NotInspected(host):
			pending = append(pending, host.Namespace+"/"+host.Name)
		default:
			hidden = append(hidden, host.Namespace+"/"+host.Name)
		}
	}
	switch {
	case len(hidden) > 0:
		return unknown("Metal3 may choose a BareMetalHost without inspected CPUs and memory: %s. Enable the inspection, exclude the host by "+
			"spec.template.spec.hostSelector of %s %s, or %s", bound.List(hidden), template.GetKind(), template.GetName(), manually)
	case len(sizes) > 0:
		return stated(sizes)
	case len(pending) > 0:
		return unknown("no selected BareMetalHost is inspected yet: %s. Wait for the inspection", bound.List(pending))
	}
	return unknown("no BareMetalHost of namespace %s matches spec.template.spec.hostSelector of %s %s. Label a host, or correct the selector",
		template.GetNamespace(), template.GetKind(), template.GetName())
}

// stated returns the smallest number of CPUs and the smallest memory of all sizes. They may be those of two hosts.
func stated(sizes []hostSize) Decision {
	cpu, memory := sizes[0], sizes[0]
	for _, size := range sizes[1:] {
		if size.cpus < cpu.cpus {
			cpu = size
		}
		if size.mebibytes < memory.mebibytes {
			memory = size
		}
	}
	capacity := map[string]string{CPUAnnotation: allocatableCPU(cpu.cpus), MemoryAnnotation: allocatableMemory(memory.mebibytes)}
	return Decision{
		Capacity: capacity,
		Message: fmt.Sprintf("Stated %s CPUs and %s of memory to the cluster autoscaler. The smallest of %s: %s has %s, %s has %s of memory",
			capacity[CPUAnnotation], capacity[MemoryAnnotation], english.Plural(len(sizes), "selected BareMetalHost", ""),
			cpu.name, english.Plural(cpu.cpus, "CPU", ""), memory.name, metal3.Size(memory.mebibytes<<20)),
	}
}
