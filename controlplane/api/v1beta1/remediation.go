package v1beta1

// Annotations that record remediation, in the format of KubeadmControlPlane: a JSON object with machine, timestamp and
// retryCount.
const (
	// RemediationInProgressAnnotation of a control plane records the unhealthy Machine that is being deleted, until its
	// replacement exists.
	RemediationInProgressAnnotation = "controlplane.cluster.x-k8s.io/remediation-in-progress"

	// RemediationForAnnotation of a Machine records the unhealthy Machine that it replaces.
	RemediationForAnnotation = "controlplane.cluster.x-k8s.io/remediation-for"
)

// Reasons of the condition OwnerRemediated of control-plane Machines, which KubeadmControlPlane uses too. Before the
// control plane provider decides, the reason is WaitingForRemediation of the MachineHealthCheck.
const (
	// MachineCannotBeRemediatedReason: the Machine is not replaced in the current state of the cluster. The user has to
	// act.
	MachineCannotBeRemediatedReason = "CannotBeRemediated"

	// MachineRemediationDeferredReason: the decision whether the Machine is replaced is deferred until another
	// operation has completed.
	MachineRemediationDeferredReason = "RemediationDeferred"

	// MachineRemediationMachineDeletingReason: the Machine is being deleted.
	MachineRemediationMachineDeletingReason = "MachineDeleting"
)
