package facts

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// InstallationState is where the installation stands. It is decided here alone, from all evidence together:
// assisted-service's word by itself may be that of a database that came back empty or older.
type InstallationState struct {
	Phase controlplanev1.InstallationPhase
	// Begun is true once an installation was started at any time. Nothing of it may be changed any more, for that could
	// be an order to install over a running cluster. Only a preparation that failed ends it: nothing was written to a
	// disk by then.
	Begun bool
	// Reregistered is true when assisted-service takes a cluster whose installation was begun for one that may still be installed.
	Reregistered bool
}

// evidence is what tells of an installation that was begun.
type evidence struct {
	// recorded is the phase that was reported before; empty when the status was lost.
	recorded controlplanev1.InstallationPhase
	// progress is what assisted-service says, unregistered that there is no AgentClusterInstall.
	progress     assisted.Installation
	unregistered bool
	// handedOver: the AgentClusterInstall names the credentials, which assisted-service writes into its spec when the
	// hosts are being installed.
	handedOver bool
	// stated: ClusterDeployment.spec.installed is true.
	stated bool
	// published: our kubeconfig exists; renewed: it has a token of ours, which only an installed cluster gives.
	published, renewed bool
	// hadNode: a control-plane Machine has, or had, its Node.
	hadNode bool
	// answers: the API server of the cluster answers; runs: it has completed a release.
	answers, runs bool
}

// recordedStart reports whether it was reported that hosts are, or were, being installed.
func (e evidence) recordedStart() bool {
	return slices.Contains([]controlplanev1.InstallationPhase{
		controlplanev1.InstallationInstalling, controlplanev1.InstallationFinalizing, controlplanev1.InstallationInstalled, controlplanev1.InstallationFailed,
	}, e.recorded)
}

// installed reports whether it is proven that the installation has ended well.
func (e evidence) installed() bool {
	return e.recorded == controlplanev1.InstallationInstalled || e.stated || e.renewed || e.progress.DayTwo
}

// started reports whether it is proven that hosts were being installed.
func (e evidence) started() bool {
	return e.recordedStart() || e.installed() || e.handedOver || e.published || e.hadNode || e.answers
}

// installationStateOf decides where an installation stands. What was installed stays so. What began stays where it was
// as long as assisted-service does not tell: it clears its status when its database is away, and the
// AgentClusterInstall may be gone.
func installationStateOf(e evidence) InstallationState {
	preparing := e.recorded == controlplanev1.InstallationPreparing && !e.progress.Registered
	s := InstallationState{Begun: e.progress.Started || e.started() || preparing}
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

// Decide settles where the installation stands, once everything else was read.
func (f *Facts) Decide() {
	published, renewed := f.publishedBefore()
	found := evidence{
		recorded:     f.ControlPlane.Status.Installation.Phase,
		progress:     f.Progress,
		unregistered: f.Install == nil,
		handedOver:   f.OwnsInstall() && f.Install.Spec.ClusterMetadata != nil,
		stated:       f.OwnsDeployment() && f.Deployment.Spec.Installed,
		published:    published,
		renewed:      renewed,
		hadNode:      slices.ContainsFunc(f.Machines, metal3.HadNode),
		answers:      f.Workload.Connected,
		runs:         f.Workload.OpenShiftVersion != "",
	}
	f.InstallationState = installationStateOf(found)
	if found.recorded == controlplanev1.InstallationFailed && f.nothingLeft() {
		found.recorded = ""
		if anew := installationStateOf(found); !anew.Begun {
			f.InstallationState = anew // what was recorded of the failed installation counts no more, if nothing else tells of one
		}
	}
}

// publishedBefore reports whether the kubeconfig is one that was published for this control plane, and whether it was
// renewed. A backup that is restored has lost its owner references, not its annotations; the user's own has neither.
func (f *Facts) publishedBefore() (published, renewed bool) {
	if f.Kubeconfig == nil {
		return false, false
	}
	if owner := metav1.GetControllerOf(f.Kubeconfig); owner != nil && owner.Kind == ControlPlaneKind && owner.UID != f.ControlPlane.UID {
		return false, false // it goes with a former control plane of the name
	}
	_, copied := f.Kubeconfig.Annotations[KubeconfigSourceAnnotation]
	renewed = HasToken(f.Kubeconfig)
	return copied || renewed || f.OwnerOf(f.Kubeconfig), renewed
}

// Installed reports whether the cluster is installed.
func (s InstallationState) Installed() bool { return s.Phase == controlplanev1.InstallationInstalled }
