package judge

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// wait is a step that usually ends without an action of the user.
type wait struct {
	// usual is the time that the step takes at most, usually. It is zero if the step has no usual time.
	usual time.Duration
	// follows is true if the step ends with a step of another object, which has the cause.
	follows bool
}

var following = wait{follows: true}

func upTo(usual time.Duration) wait { return wait{usual: usual} }

// waits are the reasons of waits of our objects. Every other reason requires an action of the user, also a reason that a
// newer provider introduces. The times are those after which the providers or assisted-service report a problem, where
// they do.
var waits = map[string]wait{
	// assisted-service must be able to register objects and to create images within minutes.
	bootstrapv1.WaitingForMachineReason:               upTo(time.Minute),
	bootstrapv1.WaitingForInfraMachineReason:          upTo(5 * time.Minute),
	bootstrapv1.WaitingForDiscoveryImageReason:        upTo(5 * time.Minute),
	bootstrapv1.WaitingForClusterDeploymentReason:     following,
	bootstrapv1.WaitingForAgentClusterInstallReason:   following,
	bootstrapv1.WaitingForClusterInfrastructureReason: following,
	// The bootstrap provider reports HostNotResponding after half an hour.
	bootstrapv1.WaitingForHostReason:           upTo(30 * time.Minute),
	bootstrapv1.WaitingForHostIdentityReason:   upTo(30 * time.Minute),
	bootstrapv1.ClusterNotAcceptingHostsReason: following,
	bootstrapv1.WaitingForHostValidationReason: upTo(15 * time.Minute),
	bootstrapv1.HostBindingReason:              upTo(5 * time.Minute),
	bootstrapv1.WaitingForInstallationReason:   following,
	bootstrapv1.InternalErrorReason:            upTo(5 * time.Minute),
	bootstrapv1.HostsFitReason:                 following,
	bootstrapv1.HostChosenReason:               following,
	bootstrapv1.DeletingAgentReason:            upTo(5 * time.Minute),
	bootstrapv1.DeletingInfraEnvReason:         upTo(5 * time.Minute),

	controlplanev1.WaitingForClusterReason:              upTo(time.Minute),
	controlplanev1.WaitingForControlPlaneEndpointReason: following,
	controlplanev1.WaitingForReleaseImageReason:         following,
	controlplanev1.WaitingForAssistedServiceReason:      upTo(5 * time.Minute),
	controlplanev1.WaitingForHostsReason:                following,
	controlplanev1.InstallationOnHoldReason:             {},
	controlplanev1.ValidationFailedReason:               upTo(30 * time.Minute),
	controlplanev1.RetryingInstallationReason:           {},
	// The time of an installation counts from the start of its preparation.
	controlplanev1.PreparingReason:                      upTo(15 * time.Minute),
	controlplanev1.InstallingReason:                     upTo(90 * time.Minute),
	controlplanev1.FinalizingReason:                     upTo(150 * time.Minute),
	controlplanev1.WaitingForImportReason:               upTo(5 * time.Minute),
	controlplanev1.WaitingForKubeconfigReason:           following,
	controlplanev1.WaitingForAPIServerReason:            following,
	controlplanev1.ControlPlaneRestartingReason:         upTo(time.Hour),
	controlplanev1.WaitingForWorkersDeletionReason:      following,
	controlplanev1.WaitingForMachinesDeletionReason:     following,
	controlplanev1.WaitingForInstallationDeletionReason: upTo(5 * time.Minute),
	controlplanev1.WaitingForNodeDeletionReason:         upTo(time.Minute),
	controlplanev1.WaitingForDrainReason:                following,
	controlplanev1.WaitingForEtcdReason:                 upTo(30 * time.Minute),
	controlplanev1.WaitingForReplacementReason:          following,
	controlplanev1.HostsReleasingReason:                 following,
	controlplanev1.UpgradeInProgressReason:              {},
	controlplanev1.MachineConfigPoolPausedReason:        {},
	controlplanev1.WaitingForHealthyClusterReason:       upTo(5 * time.Minute),

	clusterv1.DeletingReason:    following,
	clusterv1.NoReplicasReason:  following,
	clusterv1.NotReadyReason:    following,
	clusterv1.RollingOutReason:  {},
	clusterv1.ScalingUpReason:   following,
	clusterv1.ScalingDownReason: following,
	clusterv1.RemediatingReason: following,
	// Aggregates of Machines have these reasons of Cluster API (util/conditions, not exported).
	"IssuesReported": following, "UnknownReported": following, "InfoReported": following,
}

// failures are the reasons of failures that nothing retries.
var failures = []string{controlplanev1.InstallationFailedReason, bootstrapv1.HostInstallationFailedReason}

// foreignWaits are the conditions of objects of Cluster API that usually end without an action of the user. Their reasons
// do not matter.
var foreignWaits = map[string]wait{
	snapshot.KindCluster + "/" + clusterv1.ClusterInfrastructureReadyCondition: upTo(5 * time.Minute),
	snapshot.KindCluster + "/" + clusterv1.ClusterTopologyReconciledCondition:  following,
	snapshot.KindCluster + "/" + clusterv1.DeletingCondition:                   following,
	// A server takes ten minutes to restart.
	snapshot.KindMachine + "/" + clusterv1.MachineNodeHealthyCondition: upTo(15 * time.Minute),
	snapshot.KindMachine + "/" + clusterv1.DeletingCondition:           {},
}

// topologyFailures are the reasons of TopologyReconciled that require an action of the user.
var topologyFailures = map[string]bool{
	clusterv1.ClusterTopologyReconciledFailedReason:                    true,
	clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason: true,
}

// waitFor returns the wait that a condition reports. It returns false if the user has to act.
func waitFor(kind string, c *metav1.Condition) (wait, bool) {
	if topologyFailures[c.Reason] {
		return wait{}, false
	}
	if kind == snapshot.KindControlPlane || kind == snapshot.KindConfig {
		w, found := waits[c.Reason]
		return w, found
	}
	w, found := foreignWaits[kind+"/"+c.Type]
	return w, found
}

// UsualStage returns the time that a stage of the installation of a host takes at most, usually. After that time
// assisted-service reports that the stage takes longer than expected (internal/host/config.go).
func UsualStage(stage string) time.Duration {
	switch aiv1beta1.HostStage(stage) {
	case "", aiv1beta1.HostStageDone:
		return 0
	case aiv1beta1.HostStageStartingInstallation, aiv1beta1.HostStageWritingImageToDisk:
		return 30 * time.Minute
	case aiv1beta1.HostStageRebooting:
		return 40 * time.Minute
	case aiv1beta1.HostStageWaitingForIgnition:
		return 24 * time.Hour
	}
	return time.Hour
}

// UsualWait returns the time that the step of a condition of our objects takes at most, usually; zero if there is none.
func UsualWait(c *metav1.Condition) time.Duration { return waits[c.Reason].usual }
