package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

func TestFirstProblemIsReported(t *testing.T) {
	installing := []metav1.Condition{
		condition.False(controlplanev1.AvailableCondition, controlplanev1.WaitingForInstallationReason, ""),
		condition.False(controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.ComponentsNotHealthyReason, "etcd"),
		condition.False(controlplanev1.InstalledCondition, controlplanev1.FinalizingReason, ""),
		condition.False(controlplanev1.KubeconfigAvailableCondition, controlplanev1.WaitingForKubeconfigReason, ""),
		condition.True(controlplanev1.ScalingUpCondition, clusterv1.ScalingUpReason),
	}
	for situation, tc := range map[string]struct {
		conditions []metav1.Condition
		deleting   bool
		wanted     string
	}{
		"the cluster is installed normally, and its operators start": {conditions: installing},
		"the installation failed, which two conditions report": {conditions: []metav1.Condition{
			condition.False(controlplanev1.AvailableCondition, controlplanev1.InstallationFailedReason, ""),
			condition.False(controlplanev1.InstalledCondition, controlplanev1.InstallationFailedReason, ""),
		}, wanted: controlplanev1.InstallationFailedReason},
		"validations fail": {conditions: []metav1.Condition{
			condition.False(controlplanev1.InstalledCondition, controlplanev1.ValidationFailedReason, ""),
		}, wanted: controlplanev1.ValidationFailedReason},
		"the cluster does not serve": {conditions: []metav1.Condition{
			condition.True(controlplanev1.InstalledCondition, controlplanev1.InstalledReason),
			condition.False(controlplanev1.MachinesUpToDateCondition, controlplanev1.UpgradeNotOfferedReason, ""),
			condition.False(controlplanev1.AvailableCondition, controlplanev1.NotAvailableReason, ""),
		}, wanted: controlplanev1.NotAvailableReason},
		"an upgrade is not offered": {conditions: []metav1.Condition{
			condition.True(controlplanev1.AvailableCondition, controlplanev1.AvailableReason),
			condition.False(controlplanev1.PreflightPassedCondition, controlplanev1.PreflightWarningsReason, ""),
			condition.False(controlplanev1.RollingOutCondition, clusterv1.NotRollingOutReason, ""),
			condition.False(controlplanev1.MachinesUpToDateCondition, controlplanev1.UpgradeNotOfferedReason, ""),
		}, wanted: controlplanev1.UpgradeNotOfferedReason},
		"the preflight warns": {conditions: []metav1.Condition{
			condition.False(controlplanev1.PreflightPassedCondition, controlplanev1.PreflightWarningsReason, ""),
		}},
		"a moved cluster is being imported": {conditions: []metav1.Condition{
			condition.True(controlplanev1.InstalledCondition, controlplanev1.InstalledReason),
			condition.False(controlplanev1.RegistrationHealthyCondition, controlplanev1.WaitingForImportReason, ""),
		}},
		"the import is refused": {conditions: []metav1.Condition{
			condition.True(controlplanev1.InstalledCondition, controlplanev1.InstalledReason),
			condition.False(controlplanev1.RegistrationHealthyCondition, controlplanev1.InvalidConfigurationReason, ""),
		}, wanted: controlplanev1.InvalidConfigurationReason},
		"the user ignores validations": {conditions: []metav1.Condition{
			condition.False(controlplanev1.ValidationsEnforcedCondition, controlplanev1.ValidationsIgnoredReason, ""),
		}},
		"a failed installation is being deleted": {conditions: []metav1.Condition{
			condition.False(controlplanev1.InstalledCondition, controlplanev1.InstallationFailedReason, ""),
			condition.True(controlplanev1.DeletingCondition, controlplanev1.WaitingForMachinesDeletionReason),
		}, deleting: true},
		"a deletion is blocked": {conditions: []metav1.Condition{
			condition.False(controlplanev1.InstalledCondition, controlplanev1.InstallationFailedReason, ""),
			condition.True(controlplanev1.DeletingCondition, controlplanev1.ForeignAgentsBoundReason),
		}, deleting: true, wanted: controlplanev1.ForeignAgentsBoundReason},
	} {
		t.Run(situation, func(t *testing.T) {
			NewWithT(t).Expect(problemReason(tc.conditions, tc.deleting)).To(Equal(tc.wanted))
		})
	}
}

func TestReasonOfSeveralConditionsIsOneProblem(t *testing.T) {
	problems := Problems([]metav1.Condition{
		condition.False(controlplanev1.MachinesCreatedCondition, controlplanev1.PullSecretMissingReason, "see the condition Installed"),
		condition.False(controlplanev1.InstalledCondition, controlplanev1.PullSecretMissingReason, "create it"),
	}, false)
	NewWithT(t).Expect(problems).To(ConsistOf(HaveField("Message", "create it")))
}

// TestNewControlPlaneReportsNoProblem: the Secret may be the next object of the manifest.
func TestNewControlPlaneReportsNoProblem(t *testing.T) {
	for age, tc := range map[time.Duration]struct {
		reason string
		left   time.Duration
	}{
		0:                {left: settlingTime},
		time.Second:      {left: settlingTime - time.Second},
		settlingTime:     {reason: controlplanev1.PullSecretMissingReason},
		2 * settlingTime: {reason: controlplanev1.PullSecretMissingReason},
	} {
		g, f := NewWithT(t), factsOf(nil)
		f.ControlPlane.CreationTimestamp = metav1.NewTime(noon)
		v := viewOf(f)
		v.Now = noon.Add(age)
		v.Found.Block(tasks.Installation, controlplanev1.PullSecretMissingReason, "create it")
		cp := f.ControlPlane.DeepCopy()
		v.Compose(cp)
		g.Expect(cp.Status.ProblemReason).To(Equal(tc.reason), "%s", age)
		g.Expect(settling(cp, v.Now)).To(Equal(tc.left), "%s", age)
		if tc.left > 0 {
			g.Expect(v.UntilChange()).To(BeNumerically("<=", tc.left), "%s", age)
			g.Expect(v.UntilChange()).To(BeNumerically(">", 0), "%s", age)
		}
	}
}
