package hostconfig

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// measuredKind is the label of our configs in metrics.
const measuredKind = "OpenshiftAssistedConfig"

// passedWords are the log messages of conditions that have become True. Events report the approval and the end of
// the installation.
var passedWords = map[string]string{
	bootstrapv1.DiscoveryImageReadyCondition: "The discovery image is ready",
	bootstrapv1.DataSecretAvailableCondition: "Boot image and bootstrap data are in place, the host may be started",
	bootstrapv1.HostIdentifiedCondition:      "The host is identified",
	bootstrapv1.HostBoundCondition:           "The host belongs to the cluster",
	clusterv1.PausedCondition:                "Paused, nothing is changed",
}

// logged logs the change that was written. Problems have Events, which are logged.
func (r *Reconciler) logged(before, after *bootstrapv1.OpenshiftAssistedConfig) {
	r.progress.BecameTrue(after, before.Status.Conditions, after.Status.Conditions, passedWords)
	if stage := after.Status.InstallationProgress; stage != string(aiv1beta1.HostStageDone) {
		r.progress.StageChanged(after, before.Status.InstallationProgress, stage, "The host is in stage "+stage)
	}
}

// stagesOfHost returns the stages of a host that has become installed, from the times of its conditions. A host
// that was already installed when it was first seen, because its cluster was moved here, has no stages.
func stagesOfHost(before, after *bootstrapv1.OpenshiftAssistedConfig) []measure.Stage {
	was, is := meta.FindStatusCondition(before.Status.Conditions,
		bootstrapv1.HostInstalledCondition), meta.FindStatusCondition(after.Status.Conditions, bootstrapv1.HostInstalledCondition)
	if was == nil || was.Status == metav1.ConditionTrue || is == nil || is.Status != metav1.ConditionTrue {
		return nil
	}
	stages := []measure.Stage{{Name: "total", Took: is.LastTransitionTime.Sub(after.CreationTimestamp.Time)}}
	for _, stage := range []struct{ name, from, to string }{
		{"discovery", bootstrapv1.DataSecretAvailableCondition, bootstrapv1.HostIdentifiedCondition},
		{"approval", bootstrapv1.HostIdentifiedCondition, bootstrapv1.HostApprovedCondition},
		{"installation", bootstrapv1.HostApprovedCondition, bootstrapv1.HostInstalledCondition},
	} {
		from, to := meta.FindStatusCondition(after.Status.Conditions, stage.from), meta.FindStatusCondition(after.Status.Conditions, stage.to)
		if from != nil && to != nil && !to.LastTransitionTime.Before(&from.LastTransitionTime) {
			stages = append(stages, measure.Stage{Name: stage.name, Took: to.LastTransitionTime.Sub(from.LastTransitionTime.Time)})
		}
	}
	return stages
}
