package installationstate

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/sample"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

func TestInstallationState(t *testing.T) {
	const (
		none       = controlplanev1.InstallationPhase("")
		pending    = controlplanev1.InstallationPending
		preparing  = controlplanev1.InstallationPreparing
		installing = controlplanev1.InstallationInstalling
		failed     = controlplanev1.InstallationFailed
		installed  = controlplanev1.InstallationInstalled
	)
	for situation, tc := range map[string]struct {
		evidence     evidence
		state        string
		phase        controlplanev1.InstallationPhase
		begun        bool
		reregistered bool
	}{
		"nothing yet":                                {evidence{}, "", pending, false, false},
		"registered":                                 {evidence{recorded: pending}, "insufficient", pending, false, false},
		"a preparation failed: it can be fixed":      {evidence{recorded: preparing}, "ready", pending, false, false},
		"preparing, and the database is unavailable": {evidence{recorded: preparing}, "", preparing, true, false},
		"a host had its Node during the preparation": {evidence{recorded: preparing, hadNode: true}, "ready", pending, true, true},
		"preparing":                                  {evidence{recorded: pending}, "preparing-for-installation", preparing, true, false},
		"installing": {
			evidence{recorded: installing, handedOver: true, published: true}, "installing", installing, true, false,
		},
		"installing, and the database is unavailable": {evidence{recorded: installing}, "", installing, true, false},
		"failed": {evidence{recorded: installing}, "error", failed, true, false},
		"installed": {
			evidence{recorded: installed, stated: true, renewed: true}, "adding-hosts", installed, true, false,
		},
		"installed, and the database is unavailable": {evidence{recorded: installed}, "", installed, true, false},

		"installed, and the database came back empty":        {evidence{recorded: installed}, "insufficient", installed, true, true},
		"installed, and the database is older":               {evidence{recorded: installed}, "installing", installed, true, true},
		"installed, and an older database reports a failure": {evidence{recorded: installed}, "error", installed, true, true},
		"installing, and the database came back":             {evidence{recorded: installing}, "pending-for-input", installing, true, true},
		"failed, and the database came back empty":           {evidence{recorded: failed}, "ready", failed, true, true},

		"status lost, stated as installed":                       {evidence{stated: true}, "insufficient", installed, true, true},
		"status lost, kubeconfig renewed":                        {evidence{renewed: true}, "insufficient", installed, true, true},
		"status lost, kubeconfig published":                      {evidence{published: true}, "insufficient", pending, true, true},
		"status lost, credentials handed over":                   {evidence{handedOver: true}, "insufficient", pending, true, true},
		"status lost, a Machine had a Node":                      {evidence{hadNode: true}, "ready", pending, true, true},
		"status lost, the cluster answers":                       {evidence{answers: true}, "insufficient", pending, true, true},
		"status lost, the cluster runs a release":                {evidence{answers: true, runs: true}, "insufficient", installed, true, true},
		"status lost, restored without the status of any object": {evidence{handedOver: true}, "", pending, true, false},
		"status lost while the release was rolled out": {
			evidence{answers: true, runs: true}, "finalizing", controlplanev1.InstallationFinalizing, true, false,
		},
		"status lost, but assisted-service reports the cluster": {evidence{hadNode: true}, "adding-hosts", installed, true, false},
		"moved here":                                        {evidence{hadNode: true, unregistered: true}, "", installed, true, false},
		"moved here, outside Metal3":                        {evidence{renewed: true, unregistered: true}, "", installed, true, false},
		"moved here, with the user's kubeconfig":            {evidence{answers: true, unregistered: true}, "", installed, true, false},
		"recorded, and the AgentClusterInstall was deleted": {evidence{recorded: installing, unregistered: true}, "", installing, true, false},
		"nothing is known":                                  {evidence{recorded: none, unregistered: true}, "", pending, false, false},
	} {
		t.Run(situation, func(t *testing.T) {
			tc.evidence.progress = assisted.Observe(sample.Install(tc.state))
			NewWithT(t).Expect(stateOf(tc.evidence)).To(Equal(facts.InstallationState{
				Phase: tc.phase, Begun: tc.begun, Reregistered: tc.reregistered,
			}))
		})
	}
}

func TestPhaseWhileAssistedServiceReportsNone(t *testing.T) {
	for situation, tc := range map[string]struct {
		recorded controlplanev1.InstallationPhase
		install  *hiveext.AgentClusterInstall
		wanted   controlplanev1.InstallationPhase
	}{
		"it never began":    {"", sample.Install(""), controlplanev1.InstallationPending},
		"it is in progress": {controlplanev1.InstallationInstalling, sample.Install(""), controlplanev1.InstallationInstalling},
		"it has ended":      {controlplanev1.InstallationInstalled, sample.Install(""), controlplanev1.InstallationInstalled},
		"it has ended, and assisted-service reports another state": {
			controlplanev1.InstallationInstalled, sample.Install("insufficient"), controlplanev1.InstallationInstalled,
		},
		"it is in progress, and assisted-service reports a later state": {
			controlplanev1.InstallationInstalling, sample.Install("finalizing"), controlplanev1.InstallationFinalizing,
		},
		"it began, and nothing is recorded (moved here during the installation)": {"", sample.Install(""), controlplanev1.InstallationPending},
		"it has ended, and the AgentClusterInstall was deleted": {
			controlplanev1.InstallationInstalled, nil, controlplanev1.InstallationInstalled,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			s := sample.Facts(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.Installation.Phase = tc.recorded })
			s.Install, s.Progress = tc.install, assisted.Observe(tc.install)
			Decide(s)
			NewWithT(t).Expect(s.Phase).To(Equal(tc.wanted))
		})
	}
}

func TestRegistrationIsFrozenWhileAssistedServiceReportsNoState(t *testing.T) {
	for situation, tc := range map[string]struct {
		recorded controlplanev1.InstallationPhase
		state    string
		frozen   bool
	}{
		"before the registration": {"", "", false},
		"registered":              {controlplanev1.InstallationPending, "insufficient", false},
		"installing":              {controlplanev1.InstallationInstalling, "installing", true},
		"installing, and the database is unavailable": {controlplanev1.InstallationInstalling, "", true},
		"installed, and the database is unavailable":  {controlplanev1.InstallationInstalled, "", true},
		"pending, and the database is unavailable":    {controlplanev1.InstallationPending, "", false},
		"a preparation failed, and can be fixed":      {controlplanev1.InstallationPreparing, "ready", false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := sample.Facts(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Status.Installation.Phase = tc.recorded })
			s.Install, s.DayOneWorkers = sample.Install(tc.state), 7
			s.Install.Spec.ProvisionRequirements.WorkerAgents = 2
			s.Progress = assisted.Observe(s.Install)
			Decide(s)
			g.Expect(s.Begun).To(Equal(tc.frozen))
			if tc.frozen {
				g.Expect(s.WorkerReplicas()).To(BeEquivalentTo(2), "the number of workers that are being installed")
			}
		})
	}
}

func TestWorkerReplicasOfMultiNodeAndSingleNodeClusters(t *testing.T) {
	g := NewWithT(t)
	s := sample.Facts(nil)
	s.DayOneWorkers = 2
	g.Expect(s.WorkerReplicas()).To(BeEquivalentTo(2))
	single := sample.Facts(func(cp *controlplanev1.OpenshiftAssistedControlPlane) { cp.Spec.Replicas = nil })
	single.DayOneWorkers = 2
	g.Expect(single.WorkerReplicas()).To(BeZero(), "workers join a single-node cluster after the installation")
	s.Install = sample.Install("installing", hivev1.ClusterInstallCondition{
		Type: hiveext.ClusterCompletedCondition, Status: "False", Reason: hiveext.ClusterInstallationInProgressReason,
	})
	s.Install.Spec.ProvisionRequirements.WorkerAgents = 2
	s.Progress, s.DayOneWorkers = assisted.Observe(s.Install), 5
	Decide(s)
	g.Expect(s.WorkerReplicas()).To(BeEquivalentTo(2), "frozen during the installation")
}

// The Secret of a deleted control plane exists until the garbage collector deletes it. It is no evidence for
// a new control plane of the same name.
func TestKubeconfigOfFormerControlPlaneIsNoEvidence(t *testing.T) {
	for owner, wanted := range map[types.UID]controlplanev1.InstallationPhase{
		"cp-uid": controlplanev1.InstallationInstalled, "former-uid": controlplanev1.InstallationPending,
	} {
		s := sample.Facts(nil)
		s.Install = sample.Install("insufficient")
		s.Progress = assisted.Observe(s.Install)
		s.Kubeconfig = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Annotations:     map[string]string{facts.KubeconfigRenewalAnnotation: "t"},
			OwnerReferences: []metav1.OwnerReference{{Kind: facts.ControlPlaneKind, UID: owner, Controller: ptr.To(true)}},
		}}
		Decide(s)
		NewWithT(t).Expect(s.Phase).To(Equal(wanted), string(owner))
		NewWithT(t).Expect(s.Begun).To(Equal(wanted == controlplanev1.InstallationInstalled), string(owner))
	}
}
