package controlplane

import (
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// standing is where the installation stands. It is decided here alone, from all evidence together: assisted-service's word by itself may be that of a database
// that came back empty or older.
type standing struct {
	phase controlplanev1.InstallationPhase
	// begun is true once an installation was started at any time. Nothing of it may be changed any more, for that could be an order to install over a
	// running cluster. Only a preparation that failed ends it: nothing was written to a disk by then.
	begun bool
	// anew is true when assisted-service takes a cluster whose installation was begun for one that may still be installed.
	anew bool
}

// evidence is what tells of an installation that was begun.
type evidence struct {
	// recorded is the phase that was reported before; empty when the status was lost.
	recorded controlplanev1.InstallationPhase
	// progress is what assisted-service says, unregistered that there is no AgentClusterInstall.
	progress     assisted.Installation
	unregistered bool
	// handedOver: the AgentClusterInstall names the credentials, which assisted-service writes into its spec when the hosts are being installed.
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

// recordedStart tells whether it was reported that hosts are, or were, being installed.
func (e evidence) recordedStart() bool {
	return slices.Contains([]controlplanev1.InstallationPhase{
		controlplanev1.InstallationInstalling, controlplanev1.InstallationFinalizing, controlplanev1.InstallationInstalled, controlplanev1.InstallationFailed,
	}, e.recorded)
}

// installed tells whether it is proven that the installation has ended well.
func (e evidence) installed() bool {
	return e.recorded == controlplanev1.InstallationInstalled || e.stated || e.renewed || e.progress.DayTwo
}

// started tells whether it is proven that hosts were being installed.
func (e evidence) started() bool {
	return e.recordedStart() || e.installed() || e.handedOver || e.published || e.hadNode || e.answers
}

// standingOf decides where an installation stands. What was installed stays so. What began stays where it was as long as assisted-service does not tell: it
// clears its status when its database is away, and the AgentClusterInstall may be gone.
func standingOf(e evidence) standing {
	preparing := e.recorded == controlplanev1.InstallationPreparing && !e.progress.Registered
	s := standing{begun: e.progress.Started || e.started() || preparing}
	s.anew = s.begun && e.progress.Registered && (!e.progress.Started || e.installed() && !e.progress.DayTwo)
	switch {
	case e.installed():
		s.phase = controlplanev1.InstallationInstalled
	case !s.begun, e.progress.Registered && e.progress.Started:
		s.phase = controlplanev1.InstallationPhase(e.progress.Phase)
	case e.recordedStart(), preparing:
		s.phase = e.recorded
	case e.unregistered, e.runs: // moved here, or restored without status
		s.phase = controlplanev1.InstallationInstalled
	default:
		s.phase = controlplanev1.InstallationPhase(e.progress.Phase)
	}
	return s
}

// standing is where the installation stands by what is known now.
func (s *scope) standing() standing {
	kubeconfig, renewal := s.publishedBefore()
	return standingOf(evidence{
		recorded:     s.before.Status.Installation.Phase,
		progress:     s.progress,
		unregistered: s.install == nil,
		handedOver:   s.owns(s.install) && s.install.Spec.ClusterMetadata != nil,
		stated:       s.owns(s.deployment) && s.deployment.Spec.Installed,
		published:    kubeconfig,
		renewed:      renewal,
		hadNode:      slices.ContainsFunc(s.machines, metal3.HadNode),
		answers:      s.workload.Connected,
		runs:         s.workload.OpenShiftVersion != "",
	})
}

// publishedBefore tells whether the kubeconfig is one that was published for this control plane, and whether it was renewed. A backup that is restored has lost its
// owner references, not its annotations; the user's own has neither.
func (s *scope) publishedBefore() (published, renewed bool) {
	if s.kubeconfigSecret == nil {
		return false, false
	}
	_, copied := s.kubeconfigSecret.Annotations[KubeconfigSourceAnnotation]
	_, renewed = s.kubeconfigSecret.Annotations[KubeconfigRenewalAnnotation]
	return copied || renewed || s.ownedBy(s.kubeconfigSecret.OwnerReferences), renewed
}

func (s *scope) begun() bool { return s.standing().begun }

func (s *scope) phase() controlplanev1.InstallationPhase { return s.standing().phase }

func (s *scope) installed() bool { return s.phase() == controlplanev1.InstallationInstalled }
