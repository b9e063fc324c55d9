package controlplane

import (
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// measuredKind is the label of our control planes in metrics.
const measuredKind = "OpenshiftAssistedControlPlane"

// measured records a written change of the status in the metrics.
func measured(before, after *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) {
	deleting := !after.DeletionTimestamp.IsZero()
	measure.CountProblems(measuredKind, reportedProblems(before, deleting), reportedProblems(after, deleting))
	measure.Installation(reached(before, after, now))
}

// passedWords are the log messages of conditions that have become True. Other conditions have Events.
var passedWords = map[string]string{
	controlplanev1.ReleaseImageResolvedCondition: "The release image is known",
	controlplanev1.InitializedCondition:          "The API server of the cluster has answered",
	controlplanev1.AvailableCondition:            "The control plane serves",
	clusterv1.PausedCondition:                    "Paused, nothing is changed",
}

// phaseWords are the log messages of the phases of an installation. Other phases have Events.
var phaseWords = map[controlplanev1.InstallationPhase]string{
	controlplanev1.InstallationPreparing:  "All hosts are known, the installation is being prepared",
	controlplanev1.InstallationFinalizing: "The hosts are installed, the operators of the cluster are coming up",
}

// logged writes a written change of the status to the log. Problems have Events, which are logged.
func (r *Reconciler) logged(before, after *controlplanev1.OpenshiftAssistedControlPlane) {
	was, is := before.Status.Conditions, after.Status.Conditions
	r.progress.BecameTrue(after, was, is, passedWords)
	if c := conditions.Get(after, controlplanev1.AvailableCondition); c != nil && !status.IsProblem(c) {
		r.progress.NoLongerTrue(after, was, is, c.Type, "The control plane does not serve any more")
	}
	if phase := after.Status.Installation.Phase; phaseWords[phase] != "" {
		r.progress.StageChanged(after, string(before.Status.Installation.Phase), string(phase), phaseWords[phase])
	}
}

// reached returns the stages that the installation has reached, with the time since the control plane was created. The
// user waits as long, also if the installation is retried. An installation whose start was not observed, as of a moved or
// imported cluster, reaches no stage. A repeated preparation does not count again.
func reached(before, after *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) []measure.Stage {
	was := slices.Index(installed.Phases, before.Status.Installation.Phase)
	is := slices.Index(installed.Phases, after.Status.Installation.Phase)
	if was < 0 || is <= was || was == 0 && after.Status.Installation.Phase == controlplanev1.InstallationInstalled {
		return nil
	}
	if was == 0 && conditions.GetReason(before, controlplanev1.InstalledCondition) == controlplanev1.PreparationFailedReason {
		was = slices.Index(installed.Phases, controlplanev1.InstallationPreparing)
	}
	stages := make([]measure.Stage, 0, len(installed.Phases))
	for _, phase := range installed.Phases[min(was, is)+1 : is+1] {
		at := now
		if c := conditions.Get(after, controlplanev1.InstalledCondition); phase == controlplanev1.InstallationInstalled && c != nil {
			at = c.LastTransitionTime.Time
		}
		stages = append(stages, measure.Stage{Name: string(phase), Took: max(0, at.Sub(after.CreationTimestamp.Time))})
	}
	return stages
}

// installationEnded reports whether an installation ended whose progress was observed.
func installationEnded(before, after *controlplanev1.OpenshiftAssistedControlPlane) bool {
	was, is := before.Status.Installation.Phase, after.Status.Installation.Phase
	return slices.Index(installed.Phases, was) > 0 && was != is && is == controlplanev1.InstallationInstalled
}
