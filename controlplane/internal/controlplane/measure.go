package controlplane

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// measuredKind is the label of our control planes in metrics.
const measuredKind = "OpenshiftAssistedControlPlane"

// stages are the phases of an installation that goes well, but for the first, which it is in from the beginning.
var stages = []controlplanev1.InstallationPhase{
	controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling, controlplanev1.InstallationFinalizing, controlplanev1.InstallationInstalled,
}

// measured takes the change that was written into the metrics. What the preflight advises is nothing that somebody has to act upon.
func measured(before, after *controlplanev1.OpenshiftAssistedControlPlane) {
	measure.Problems(measuredKind, before.Status.Conditions, after.Status.Conditions, func(c *metav1.Condition) bool {
		return status.Urgent(c.Reason) && c.Type != controlplanev1.PreflightPassedCondition
	})
	measure.Installation(reached(before, after))
}

// reached are the stages that the installation has come to for the first time, with the time since the control plane was created: that is how long its user waits, also for an
// installation that is tried again.
func reached(before, after *controlplanev1.OpenshiftAssistedControlPlane) []measure.Stage {
	var found []measure.Stage
	for _, r := range after.Status.Installation.Reached {
		if slices.Contains(stages, r.Phase) && !slices.ContainsFunc(before.Status.Installation.Reached, func(was controlplanev1.InstallationPhaseTime) bool { return was.Phase == r.Phase }) {
			found = append(found, measure.Stage{Name: string(r.Phase), Took: max(0, r.Time.Sub(after.CreationTimestamp.Time))})
		}
	}
	return found
}
