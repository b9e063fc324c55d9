package v1beta1

// Annotations with which the books of remediation are kept, as KubeadmControlPlane keeps them. Both hold a JSON object: machine, timestamp and retryCount.
const (
	// RemediationInProgressAnnotation holds, on a control plane, which unhealthy Machine is being deleted, until another takes its place.
	RemediationInProgressAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"

	// RemediationForAnnotation holds, on a Machine, in whose place it was made.
	RemediationForAnnotation = "controlplane.cluster.x-k8s.io/remediation-for"
)

// Reasons of the condition OwnerRemediated of control-plane Machines, which are those of KubeadmControlPlane. Until it was decided upon, the reason is that of the
// MachineHealthCheck, WaitingForRemediation.
const (
	// MachineCannotBeRemediatedReason: the Machine is not replaced as things are; somebody has to act.
	MachineCannotBeRemediatedReason = "CannotBeRemediated"

	// MachineRemediationDeferredReason: it is not decided yet whether the Machine is replaced, for something else comes first.
	MachineRemediationDeferredReason = "RemediationDeferred"

	// MachineRemediationMachineDeletingReason: the Machine is being deleted.
	MachineRemediationMachineDeletingReason = "MachineDeleting"
)
