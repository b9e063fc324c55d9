package v1beta1

const (
	// AutoscalingCapacityAnnotation of a MachineDeployment requests that the control plane provider states the capacity
	// of its hosts. The cluster autoscaler needs the capacity to scale from zero. The only value is
	// [AutoscalingCapacityFromHardwareData].
	AutoscalingCapacityAnnotation = "controlplane.cluster.x-k8s.io/autoscaling-capacity"

	// AutoscalingCapacityFromHardwareData requests the capacity of the smallest BareMetalHost that the hostSelector of
	// the Metal3MachineTemplate matches. HardwareData report the capacity.
	AutoscalingCapacityFromHardwareData = "from-hardware-data"

	// StatedCapacityAnnotation of a MachineDeployment records the annotations with the capacity that the control plane
	// provider stated, as a JSON object. A move or a restore loses the field owners of these annotations, and the
	// record distinguishes them from those of the user.
	StatedCapacityAnnotation = "controlplane.cluster.x-k8s.io/stated-capacity"
)
