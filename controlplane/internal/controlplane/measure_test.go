package controlplane

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/measuretest"
)

func TestStagesOfAnInstallationAreMeasuredWhenTheyAreReached(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	now, dated := created.Add(time.Hour), created.Add(50*time.Minute)
	in := func(phase controlplanev1.InstallationPhase) *controlplanev1.OpenshiftAssistedControlPlane {
		cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		cp.Status.Installation.Phase = phase
		cp.Status.Conditions = []metav1.Condition{{Type: controlplanev1.InstalledCondition, LastTransitionTime: metav1.NewTime(dated)}}
		return cp
	}
	for situation, tc := range map[string]struct {
		before, after controlplanev1.InstallationPhase
		reached       []measure.Stage
	}{
		"the installation begins": {
			controlplanev1.InstallationPending, controlplanev1.InstallationPreparing, []measure.Stage{{Name: "Preparing", Took: time.Hour}},
		},
		"a stage was too short to be reported": {
			controlplanev1.InstallationPending,
			controlplanev1.InstallationInstalling,
			[]measure.Stage{{Name: "Preparing", Took: time.Hour}, {Name: "Installing", Took: time.Hour}},
		},
		"it is installed, and the condition has the time": {
			controlplanev1.InstallationFinalizing,
			controlplanev1.InstallationInstalled,
			[]measure.Stage{{Name: "Installed", Took: 50 * time.Minute}},
		},
		"it continues":                         {controlplanev1.InstallationInstalling, controlplanev1.InstallationInstalling, nil},
		"it fails":                             {controlplanev1.InstallationInstalling, controlplanev1.InstallationFailed, nil},
		"it is retried":                        {controlplanev1.InstallationFailed, controlplanev1.InstallationPending, nil},
		"its preparation failed":               {controlplanev1.InstallationPreparing, controlplanev1.InstallationPending, nil},
		"its control plane is new":             {"", controlplanev1.InstallationPending, nil},
		"it was installed on another hub":      {"", controlplanev1.InstallationInstalled, nil},
		"it turns out to be installed already": {controlplanev1.InstallationPending, controlplanev1.InstallationInstalled, nil},
		"it was installed long ago":            {controlplanev1.InstallationInstalled, controlplanev1.InstallationInstalled, nil},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			stages := reached(in(tc.before), in(tc.after), now)
			g.Expect(stages).To(HaveLen(len(tc.reached)))
			for i, stage := range tc.reached {
				g.Expect(stages[i]).To(Equal(stage))
			}
		})
	}
}

func TestRepeatedPreparationIsMeasuredOnce(t *testing.T) {
	g := NewWithT(t)
	now := time.Now()
	in := func(phase controlplanev1.InstallationPhase, reason string) *controlplanev1.OpenshiftAssistedControlPlane {
		cp := &controlplanev1.OpenshiftAssistedControlPlane{}
		cp.Status.Installation.Phase = phase
		cp.Status.Conditions = []metav1.Condition{{Type: controlplanev1.InstalledCondition, Reason: reason}}
		return cp
	}
	failed := controlplanev1.PreparationFailedReason
	again := in(controlplanev1.InstallationPreparing, failed)
	g.Expect(reached(in(controlplanev1.InstallationPending, failed), again, now)).To(BeEmpty())
	for _, before := range []*controlplanev1.OpenshiftAssistedControlPlane{again, in(controlplanev1.InstallationPending, failed)} {
		g.Expect(reached(before, in(controlplanev1.InstallationInstalling, controlplanev1.InstallingReason), now)).To(
			HaveExactElements(HaveField("Name", "Installing")), "now or later",
		)
	}
}

func TestPreflightWarningsAreNotCountedAsProblem(t *testing.T) {
	g := NewWithT(t)
	after := &controlplanev1.OpenshiftAssistedControlPlane{}
	after.Status.Conditions = []metav1.Condition{
		{Type: controlplanev1.PreflightPassedCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.PreflightWarningsReason},
	}
	measured(&controlplanev1.OpenshiftAssistedControlPlane{}, after, time.Now())
	value, err := measuretest.Count("capi_openshift_agent_problems_total", map[string]string{
		"kind": measuredKind, "reason": controlplanev1.PreflightWarningsReason,
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(value).To(BeZero())
}

func TestProblemsOfEventsAreCounted(t *testing.T) {
	g := NewWithT(t)
	count := func() float64 {
		value, err := measuretest.Count("capi_openshift_agent_problems_total", map[string]string{
			"kind": measuredKind, "reason": controlplanev1.ValidationFailedReason,
		})
		g.Expect(err).NotTo(HaveOccurred())
		return value
	}
	after := &controlplanev1.OpenshiftAssistedControlPlane{}
	after.Status.Conditions = []metav1.Condition{
		{Type: controlplanev1.InstalledCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.ValidationFailedReason},
	}
	before := count()
	measured(&controlplanev1.OpenshiftAssistedControlPlane{}, after, time.Now())
	g.Expect(count()).To(Equal(before), "a new control plane does not report problems yet")
	after.Status.ProblemReason = controlplanev1.ValidationFailedReason
	measured(&controlplanev1.OpenshiftAssistedControlPlane{}, after, time.Now())
	g.Expect(count()-before).To(BeEquivalentTo(1), "it has a Warning Event")
}

func TestReportedProblemIsCountedOnce(t *testing.T) {
	g := NewWithT(t)
	count := func(name string, labels map[string]string) float64 {
		value, err := measuretest.Count("capi_openshift_agent_"+name, labels)
		g.Expect(err).NotTo(HaveOccurred())
		return value
	}
	failed := func() float64 {
		return count("problems_total", map[string]string{
			"kind": "OpenshiftAssistedControlPlane", "reason": controlplanev1.InstallationFailedReason,
		})
	}
	begun := func() float64 {
		return count("installation_duration_seconds", map[string]string{"stage": "Installing"})
	}
	failedBefore, begunBefore := failed(), begun()
	h := newFailedHub(t)
	h.reconcile()
	h.r = New(h.r.Options)
	h.reconcile()
	g.Expect(failed()-failedBefore).To(BeEquivalentTo(1), "also after a restart of the manager")
	g.Expect(begun() - begunBefore).To(BeEquivalentTo(1))
}
