package controlplane

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// measuredKind is the label of our control planes in metrics.
const measuredKind = "OpenshiftAssistedControlPlane"

// measured takes the change that was written into the metrics. What the preflight advises is nothing that somebody has to act upon.
func measured(before, after *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) {
	measure.CountProblems(measuredKind, before.Status.Conditions, after.Status.Conditions, isProblem)
	measure.Installation(reached(before, after, now))
}

func isProblem(c *metav1.Condition) bool {
	return status.Urgent(c.Reason) && c.Type != controlplanev1.PreflightPassedCondition
}

// passedWords is what the log says of conditions that have become True; the others have Events.
var passedWords = map[string]string{
	controlplanev1.ReleaseImageResolvedCondition: "The release image is known",
	controlplanev1.InitializedCondition:          "The API server of the cluster has answered",
	controlplanev1.AvailableCondition:            "The control plane serves",
	clusterv1.PausedCondition:                    "Paused, nothing is changed",
}

// phaseWords is what the log says of the phases of an installation; the others have Events.
var phaseWords = map[controlplanev1.InstallationPhase]string{
	controlplanev1.InstallationPreparing:  "All hosts are there, the installation is being prepared",
	controlplanev1.InstallationFinalizing: "The hosts are installed, the operators of the cluster are coming up",
}

// announced are the problems that have Events.
var announced = []string{
	controlplanev1.InstallationFailedReason, controlplanev1.PreparationFailedReason, controlplanev1.ReregisteredReason, controlplanev1.HostsLaggingReason,
	controlplanev1.WorkersNotCreatedReason,
}

// logged writes the change that was written into the log, but for what Events say.
func (r *Reconciler) logged(before, after *controlplanev1.OpenshiftAssistedControlPlane) {
	was, is := before.Status.Conditions, after.Status.Conditions
	r.progress.BecameTrue(after, was, is, passedWords)
	r.progress.NoLongerTrue(after, was, is, controlplanev1.AvailableCondition, "The control plane does not serve any more")
	r.progress.Problems(after, is, slices.DeleteFunc(measure.NewProblems(was, is, isProblem), func(reason string) bool { return slices.Contains(announced, reason) }))
	if phase := after.Status.Installation.Phase; phaseWords[phase] != "" {
		r.progress.StageChanged(after, string(before.Status.Installation.Phase), string(phase), phaseWords[phase])
	}
}

// reached are the stages that the installation has come to, with the time since the control plane was created: that is
// how long its user waits, also for an installation that is tried again. One of which nobody saw it begin, of a cluster
// that was moved or imported, comes to none. A preparation that failed is told until one succeeds, and does not count
// again.
func reached(before, after *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) []measure.Stage {
	was, is := slices.Index(status.InstallationPhases, before.Status.Installation.Phase), slices.Index(status.InstallationPhases, after.Status.Installation.Phase)
	if was < 0 || is <= was || was == 0 && after.Status.Installation.Phase == controlplanev1.InstallationInstalled {
		return nil
	}
	if was == 0 && conditions.GetReason(before, controlplanev1.InstalledCondition) == controlplanev1.PreparationFailedReason {
		was = slices.Index(status.InstallationPhases, controlplanev1.InstallationPreparing)
	}
	stages := make([]measure.Stage, 0, len(status.InstallationPhases))
	for _, phase := range status.InstallationPhases[min(was, is)+1 : is+1] {
		at := now
		if c := conditions.Get(after, controlplanev1.InstalledCondition); phase == controlplanev1.InstallationInstalled && c != nil {
			at = c.LastTransitionTime.Time
		}
		stages = append(stages, measure.Stage{Name: string(phase), Took: max(0, at.Sub(after.CreationTimestamp.Time))})
	}
	return stages
}

// sawItEnd reports whether an installation ended that was seen going on.
func sawItEnd(before, after *controlplanev1.OpenshiftAssistedControlPlane) bool {
	return slices.Index(status.InstallationPhases, before.Status.Installation.Phase) > 0 && before.Status.Installation.Phase != after.Status.Installation.Phase &&
		after.Status.Installation.Phase == controlplanev1.InstallationInstalled
}
