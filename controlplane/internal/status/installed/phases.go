package installed

import (
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// Phases are the phases of a successful installation, in order.
var Phases = []controlplanev1.InstallationPhase{
	controlplanev1.InstallationPending, controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling,
	controlplanev1.InstallationFinalizing, controlplanev1.InstallationInstalled,
}

// Observed reports whether an installation was reported while it ran, or is about to be. now is
// its phase. Reaction times are measured for these installations only: for example, the kubeconfig of a
// cluster that was installed long ago may be published again.
func Observed(before *controlplanev1.OpenshiftAssistedControlPlane, now controlplanev1.InstallationPhase) bool {
	was := slices.Index(Phases, before.Status.Installation.Phase)
	return was > 0 && before.Status.Installation.Phase != controlplanev1.InstallationInstalled ||
		was == 0 && now != controlplanev1.InstallationInstalled
}
