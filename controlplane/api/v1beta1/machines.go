package v1beta1

// The condition of Machines that the control plane provider sets, and its reasons. KubeadmControlPlane uses the same
// names.
const (
	// EtcdMemberHealthyCondition reports the etcd member of a control-plane Machine of an installed cluster. It is
	// False while the member is down, and Unknown while the host has no voting member. A MachineHealthCheck can name
	// the condition.
	EtcdMemberHealthyCondition    = "EtcdMemberHealthy"
	EtcdMemberHealthyReason       = "Healthy"
	EtcdMemberNotHealthyReason    = "NotHealthy"
	EtcdMemberHealthUnknownReason = "HealthUnknown"
)
