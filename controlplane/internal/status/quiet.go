package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
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

// OnlyWords tells whether nothing changed that anybody acts upon: conditions keep their status, and the installation its phase. How far it is, and
// how many Machines have come, is for people; the last of them turns a condition.
func OnlyWords(before, after *controlplanev1.OpenshiftAssistedControlPlaneStatus) bool {
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
