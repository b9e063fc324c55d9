// Package installationstate concludes the state of an installation from all evidence in the facts of a reconcile. It has no
// client.
package installationstate

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/attempt"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// evidence holds the signs of a started installation.
type evidence struct {
	// recorded is the phase that was reported before; "" if the status was lost.
	recorded controlplanev1.InstallationPhase
	// progress is the report of assisted-service. unregistered is true if there is no AgentClusterInstall.
	progress     assisted.Installation
	unregistered bool
	// handedOver is true if the AgentClusterInstall names the credentials, which assisted-service writes into
	// its spec when the hosts are being installed.
	handedOver bool
	// stated is true if ClusterDeployment.spec.installed is true.
	stated bool
	// published is true if our kubeconfig exists. renewed is true if it has a token of ours, which only an
	// installed cluster issues.
	published, renewed bool
	// hadNode is true if a control-plane Machine has, or had, its Node.
	hadNode bool
	// answers is true if the API server of the cluster answers. runs is true if the cluster has completed a
	// release.
	answers, runs bool
}

// recordedStart reports whether the status reported that hosts are, or were, being installed.
func (e evidence) recordedStart() bool {
	return slices.Contains([]controlplanev1.InstallationPhase{
		controlplanev1.InstallationInstalling,
		controlplanev1.InstallationFinalizing,
		controlplanev1.InstallationInstalled,
		controlplanev1.InstallationFailed,
	}, e.recorded)
}

// installed reports whether the installation has certainly succeeded.
func (e evidence) installed() bool {
	return e.recorded == controlplanev1.InstallationInstalled || e.stated || e.renewed || e.progress.DayTwo
}

// started reports whether hosts were certainly being installed.
func (e evidence) started() bool {
	return e.recordedStart() || e.installed() || e.handedOver || e.published || e.hadNode || e.answers
}

// stateOf returns the state of an installation. An installed cluster stays installed. A started
// installation keeps its phase while assisted-service reports none. It clears its status when its database is
// unavailable, and the AgentClusterInstall may be deleted.
func stateOf(e evidence) facts.InstallationState {
	preparing := e.recorded == controlplanev1.InstallationPreparing && !e.progress.Registered
	s := facts.InstallationState{Begun: e.progress.Started || e.started() || preparing}
	s.Reregistered = s.Begun && e.progress.Registered && (!e.progress.Started || e.installed() && !e.progress.DayTwo)
	switch {
	case e.installed():
		s.Phase = controlplanev1.InstallationInstalled
	case !s.Begun, e.progress.Registered && e.progress.Started:
		s.Phase = controlplanev1.InstallationPhase(e.progress.Phase)
	case e.recordedStart(), preparing:
		s.Phase = e.recorded
	case e.unregistered, e.runs: // moved here, or restored without status
		s.Phase = controlplanev1.InstallationInstalled
	default:
		s.Phase = controlplanev1.InstallationPhase(e.progress.Phase)
	}
	return s
}

// Decide sets the state of the installation, after all other facts were read.
func Decide(f *facts.Facts) {
	published, renewed := PublishedBefore(f)
	found := evidence{
		recorded:     f.ControlPlane.Status.Installation.Phase,
		progress:     f.Progress,
		unregistered: f.Install == nil,
		handedOver:   ownership.OwnsInstall(f) && f.Install.Spec.ClusterMetadata != nil,
		stated:       ownership.OwnsDeployment(f) && f.Deployment.Spec.Installed,
		published:    published,
		renewed:      renewed,
		hadNode:      slices.ContainsFunc(f.Machines, metal3.HadNode),
		answers:      f.Workload.Connected,
		runs:         f.Workload.OpenShiftVersion != "",
	}
	f.InstallationState = stateOf(found)
	if found.recorded == controlplanev1.InstallationFailed && attempt.NothingLeft(f) {
		found.recorded = ""
		if fresh := stateOf(found); !fresh.Begun {
			f.InstallationState = fresh // the record of the failed installation is void without other evidence
		}
	}
}

// PublishedBefore reports whether the kubeconfig was published for this control plane, and whether it was
// renewed. A restored Secret has lost its owner references, not its annotations. The user's own Secret has
// neither.
func PublishedBefore(f *facts.Facts) (published, renewed bool) {
	if f.Kubeconfig == nil {
		return false, false
	}
	if owner := metav1.GetControllerOf(f.Kubeconfig); owner != nil && owner.Kind == facts.ControlPlaneKind && owner.UID != f.ControlPlane.UID {
		return false, false // it is deleted with a former control plane of the same name
	}
	_, copied := f.Kubeconfig.Annotations[facts.KubeconfigSourceAnnotation]
	renewed = facts.HasToken(f.Kubeconfig)
	return copied || renewed || f.OwnerOf(f.Kubeconfig), renewed
}
