package controlplane

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// measuredKind is the label of our control planes in metrics.
const measuredKind = "OpenshiftAssistedControlPlane"

// phases are those of an installation that goes well, in order.
var phases = []controlplanev1.InstallationPhase{
	controlplanev1.InstallationPending, controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling,
	controlplanev1.InstallationFinalizing, controlplanev1.InstallationInstalled,
}

// measured takes the change that was written into the metrics. What the preflight advises is nothing that somebody has to act upon.
func measured(before, after *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) {
	measure.Problems(measuredKind, before.Status.Conditions, after.Status.Conditions, func(c *metav1.Condition) bool {
		return status.Urgent(c.Reason) && c.Type != controlplanev1.PreflightPassedCondition
	})
	measure.Installation(reached(before, after, now))
}

// reached are the stages that the installation has come to, with the time since the control plane was created: that is how long its user waits, also for an
// installation that is tried again. One of which nobody saw it begin, of a cluster that was moved or imported, comes to none.
func reached(before, after *controlplanev1.OpenshiftAssistedControlPlane, now time.Time) []measure.Stage {
	was, is := slices.Index(phases, before.Status.Installation.Phase), slices.Index(phases, after.Status.Installation.Phase)
	if was < 0 || is <= was || was == 0 && after.Status.Installation.Phase == controlplanev1.InstallationInstalled {
		return nil
	}
	stages := make([]measure.Stage, 0, is-was)
	for _, phase := range phases[was+1 : is+1] {
		at := now
		if c := conditions.Get(after, controlplanev1.InstalledCondition); phase == controlplanev1.InstallationInstalled && c != nil {
			at = c.LastTransitionTime.Time
		}
		stages = append(stages, measure.Stage{Name: string(phase), Took: max(0, at.Sub(after.CreationTimestamp.Time))})
	}
	return stages
}
