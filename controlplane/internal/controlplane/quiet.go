package controlplane

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

const (
	// quietFor is how long a status waits to be written when only its words changed. While a cluster is installed each host changes what is
	// said every few moments, and nothing of it is of use to anybody unless it lasts.
	quietFor = 10 * time.Second
	// rememberedQuiet is far more control planes than have something to say at one time; what is forgotten waits anew.
	rememberedQuiet = 4096
)

// alarms are the reasons of what somebody has to act upon. They are reported at once when they come, and when they go.
var alarms = []string{
	controlplanev1.InvalidConfigurationReason, controlplanev1.UnsupportedVersionReason, controlplanev1.PullSecretMissingReason,
	controlplanev1.ManifestsMissingReason, controlplanev1.ClusterImageSetMissingReason, controlplanev1.ReleaseImageNotFoundReason,
	controlplanev1.RegistryUnavailableReason, controlplanev1.InstallationNotOursReason, controlplanev1.InstallationRejectedReason,
	controlplanev1.PreparationFailedReason, controlplanev1.UserActionRequiredReason, controlplanev1.InstallationFailedReason,
	controlplanev1.InfraTemplateMissingReason, controlplanev1.MachineCreationFailedReason, controlplanev1.RegisteredAnewReason,
	controlplanev1.KubeconfigRefusedReason,
	controlplanev1.VersionChangeNotSupportedReason, controlplanev1.VersionMismatchReason,
	controlplanev1.AssistedServiceNotRespondingReason,
	controlplanev1.KubeconfigUnauthorizedReason,
}

// quiet returns how much longer the status may wait to be written; 0 is at once. The time counts from the first change of words that was not
// written, so that words that change all the time are still written.
func (r *Reconciler) quiet(s *scope) time.Duration {
	if !onlyWords(&s.before.Status, &s.controlPlane.Status) {
		return 0
	}
	now := r.now()
	since, waiting := r.unwritten.Get(s.controlPlane.UID)
	if !waiting {
		r.unwritten.Add(s.controlPlane.UID, now)
		return quietFor
	}
	return max(0, quietFor-now.Sub(since.(time.Time))) //nolint:forcetypeassert // nothing else is put in
}

// onlyWords tells whether nothing changed that anybody acts upon: conditions keep their status, and the installation its phase. How far it is, and
// how many Machines have come, is for people; the last of them turns a condition.
func onlyWords(before, after *controlplanev1.OpenshiftAssistedControlPlaneStatus) bool {
	same := after.DeepCopy()
	same.Installation.Percentage, same.Installation.Progress = before.Installation.Percentage, before.Installation.Progress
	same.ReadyReplicas, same.AvailableReplicas, same.UpToDateReplicas = before.ReadyReplicas, before.AvailableReplicas, before.UpToDateReplicas
	for i, c := range same.Conditions {
		if was := meta.FindStatusCondition(before.Conditions, c.Type); was != nil && was.Status == c.Status && !alarming(was, &c) {
			same.Conditions[i] = *was
		}
	}
	return equality.Semantic.DeepEqual(before, same)
}

// alarming tells whether something came that somebody has to act upon, went, or, when the installation failed, is told in other words: which
// host it was may be known a moment later.
func alarming(before, after *metav1.Condition) bool {
	if before.Reason != after.Reason {
		return slices.Contains(alarms, before.Reason) || slices.Contains(alarms, after.Reason)
	}
	return after.Reason == controlplanev1.InstallationFailedReason && before.Message != after.Message
}
