package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// deferrable are the reasons that may be reported late: of states that pass automatically, or are as
// intended. Every other reason is urgent, also one that is missing here: it requires a user action, and its
// start and end are reported at once.
var deferrable = []string{
	controlplanev1.WaitingForClusterReason,
	controlplanev1.WaitingForClusterInfrastructureReason,
	controlplanev1.WaitingForControlPlaneEndpointReason,
	controlplanev1.ReleaseImageResolvedReason, controlplanev1.WaitingForReleaseImageReason, controlplanev1.WaitingForAssistedServiceReason,
	controlplanev1.WaitingForHostsReason, controlplanev1.InstallationOnHoldReason, controlplanev1.ValidationFailedReason,
	controlplanev1.RetryingInstallationReason,
	controlplanev1.PreparingReason,
	controlplanev1.InstallingReason,
	controlplanev1.FinalizingReason,
	controlplanev1.InstalledReason,
	controlplanev1.WaitingForKubeconfigReason, controlplanev1.KubeconfigAvailableReason, controlplanev1.WaitingForAPIServerReason,
	controlplanev1.InitializedReason,
	controlplanev1.ControlPlaneRestartingReason,
	controlplanev1.ConnectionDownReason,
	controlplanev1.HealthUnknownReason,
	controlplanev1.ComponentsHealthyReason,
	controlplanev1.ComponentsNotHealthyReason,
	controlplanev1.AvailableReason,
	controlplanev1.NotAvailableReason,
	controlplanev1.MachinesCreatedReason,
	controlplanev1.WaitingForInstallationReason, controlplanev1.NotDeletingReason, controlplanev1.WaitingForWorkersDeletionReason,
	controlplanev1.WaitingForMachinesDeletionReason, controlplanev1.WaitingForInstallationDeletionReason,
	controlplanev1.PreflightPassedReason,
	controlplanev1.PreflightIncompleteReason,
	controlplanev1.EtcdClusterHealthyReason,
	controlplanev1.WaitingForNodeDeletionReason,
	controlplanev1.WaitingForDrainReason,
	controlplanev1.WaitingForEtcdReason,
	controlplanev1.WaitingForReplacementReason,
	controlplanev1.HostsReleasingReason, controlplanev1.NotReleasingReason,
	controlplanev1.UpgradeInProgressReason,
	controlplanev1.MachineConfigPoolPausedReason,
	controlplanev1.WaitingForHealthyClusterReason,

	// Reasons of Cluster API in use, and those that it sets for an aggregate of Machines (util/conditions,
	// not exported).
	clusterv1.DeletingReason, clusterv1.InternalErrorReason, clusterv1.NoReplicasReason, clusterv1.NotReadyReason, clusterv1.RollingOutReason,
	clusterv1.NotRollingOutReason,
	clusterv1.ScalingUpReason,
	clusterv1.NotScalingUpReason,
	clusterv1.ScalingDownReason,
	clusterv1.NotScalingDownReason,
	clusterv1.RemediatingReason, clusterv1.NotRemediatingReason, clusterv1.PausedReason, clusterv1.NotPausedReason,
	"IssuesReported", "UnknownReported", "InfoReported",
}

// OnlyWords reports whether a change of the status requires no action: conditions keep their status, and the
// installation its phase. Progress and counts of Machines are informative; the last Machine changes a
// condition.
func OnlyWords(before, after *controlplanev1.OpenshiftAssistedControlPlaneStatus) bool {
	same := after.DeepCopy()
	same.Installation.Percentage, same.Installation.Progress = before.Installation.Percentage, before.Installation.Progress
	same.Installation.StartTime = before.Installation.StartTime
	same.ProblemReason = before.ProblemReason // a condition reports the problem
	same.ReadyReplicas, same.AvailableReplicas, same.UpToDateReplicas = before.ReadyReplicas, before.AvailableReplicas, before.UpToDateReplicas
	for i, c := range same.Conditions {
		if was := meta.FindStatusCondition(before.Conditions, c.Type); was != nil && was.Status == c.Status && !urgent(was, &c) {
			same.Conditions[i] = *was
		}
	}
	return equality.Semantic.DeepEqual(before, same)
}

// Urgent reports whether a reason requires a user action.
func Urgent(reason string) bool { return !slices.Contains(deferrable, reason) }

// urgent reports whether an urgent reason began or ended. After a failed installation a new text is urgent as
// well: the failed host may become known a moment later.
func urgent(before, after *metav1.Condition) bool {
	if before.Reason != after.Reason {
		return Urgent(before.Reason) || Urgent(after.Reason)
	}
	return after.Reason == controlplanev1.InstallationFailedReason && before.Message != after.Message
}
