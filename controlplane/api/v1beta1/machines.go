package v1beta1

// The condition of Machines that the control plane provider sets, and its reasons. Their names are those of KubeadmControlPlane.
const (
	// EtcdMemberHealthyCondition of a control-plane Machine of an installed cluster is False while the etcd member on its host is down, and Unknown while the host has no voting
	// member. A MachineHealthCheck can name the condition.
	EtcdMemberHealthyCondition    = "EtcdMemberHealthy"
	EtcdMemberHealthyReason       = "Healthy"
	EtcdMemberNotHealthyReason    = "NotHealthy"
	EtcdMemberHealthUnknownReason = "HealthUnknown"
)
