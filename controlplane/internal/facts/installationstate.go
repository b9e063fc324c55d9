package facts

import controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"

// InstallationState is the state of the installation. Only package installationstate concludes it, from all evidence. The
// report of assisted-service alone may come from a database that was restored empty or outdated.
type InstallationState struct {
	Phase controlplanev1.InstallationPhase
	// Begun is true once an installation was started at any time. The registration may not be changed any
	// more, because that could start an installation over a running cluster. Only a failed preparation ends
	// it: no disk was written by then.
	Begun bool
	// Reregistered is true if assisted-service treats a cluster whose installation was started as one that
	// can still be installed.
	Reregistered bool
}

// Installed reports whether the cluster is installed.
func (s InstallationState) Installed() bool { return s.Phase == controlplanev1.InstallationInstalled }
