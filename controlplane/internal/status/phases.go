package status

import (
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// InstallationPhases are those of an installation that succeeds, in order.
var InstallationPhases = []controlplanev1.InstallationPhase{
	controlplanev1.InstallationPending, controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling,
	controlplanev1.InstallationFinalizing, controlplanev1.InstallationInstalled,
}

// InstallationObserved reports whether an installation, which is in phase now, was reported while it ran, or is about to be: reaction times count for these alone. The
// kubeconfig of a cluster that was installed long ago, for instance, may be published again.
func InstallationObserved(before *controlplanev1.OpenshiftAssistedControlPlane, now controlplanev1.InstallationPhase) bool {
	was := slices.Index(InstallationPhases, before.Status.Installation.Phase)
	return was > 0 && before.Status.Installation.Phase != controlplanev1.InstallationInstalled || was == 0 && now != controlplanev1.InstallationInstalled
}
