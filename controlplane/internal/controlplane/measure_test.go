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
	const (
		pending    = controlplanev1.InstallationPending
		preparing  = controlplanev1.InstallationPreparing
		installing = controlplanev1.InstallationInstalling
		failed     = controlplanev1.InstallationFailed
	)
	at := func(phases ...controlplanev1.InstallationPhase) *controlplanev1.OpenshiftAssistedControlPlane {
		cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		for i, phase := range phases {
			cp.Status.Installation.Reached = append(cp.Status.Installation.Reached,
				controlplanev1.InstallationPhaseTime{Phase: phase, Time: metav1.NewTime(created.Add(time.Duration(i) * time.Hour))})
		}
		return cp
	}
	for situation, tc := range map[string]struct {
		before, after *controlplanev1.OpenshiftAssistedControlPlane
		want          []measure.Stage
	}{
		"its control plane is new":          {at(), at(pending), nil},
		"the installation begins":           {at(pending), at(pending, preparing), []measure.Stage{{Name: "Preparing", Took: time.Hour}}},
		"two stages are reported at once":   {at(pending), at(pending, preparing, installing), []measure.Stage{{Name: "Preparing", Took: time.Hour}, {Name: "Installing", Took: 2 * time.Hour}}},
		"it goes on, or back, or on again":  {at(pending, preparing), at(pending, preparing), nil},
		"it fails":                          {at(pending, preparing), at(pending, preparing, failed), nil},
		"nobody saw how it was installed":   {at(), at(), nil},
		"its clock was behind the server's": {at(), at(preparing), []measure.Stage{{Name: "Preparing"}}},
	} {
		NewWithT(t).Expect(reached(tc.before, tc.after)).To(Equal(tc.want), situation)
	}
}

func TestWhatThePreflightAdvisesIsNoProblem(t *testing.T) {
	g := NewWithT(t)
	count := func() float64 {
		value, err := measuretest.Count("capi_openshift_agent_problems_total", map[string]string{"kind": measuredKind, "reason": controlplanev1.PreflightWarningsReason})
		g.Expect(err).NotTo(HaveOccurred())
		return value
	}
	after := &controlplanev1.OpenshiftAssistedControlPlane{}
	after.Status.Conditions = []metav1.Condition{{Type: controlplanev1.PreflightPassedCondition, Status: metav1.ConditionFalse, Reason: controlplanev1.PreflightWarningsReason}}
	measured(&controlplanev1.OpenshiftAssistedControlPlane{}, after)
	g.Expect(count()).To(BeZero())
}

func TestWhatIsReportedIsMeasuredOnce(t *testing.T) {
	g := NewWithT(t)
	count := func(name string, labels map[string]string) float64 {
		value, err := measuretest.Count("capi_openshift_agent_"+name, labels)
		g.Expect(err).NotTo(HaveOccurred())
		return value
	}
	failed := func() float64 {
		return count("problems_total", map[string]string{"kind": "OpenshiftAssistedControlPlane", "reason": controlplanev1.InstallationFailedReason})
	}
	begun := func() float64 {
		return count("installation_duration_seconds", map[string]string{"stage": "Installing"})
	}
	failedBefore, begunBefore := failed(), begun()
	h := newFailedHub(t)
	h.reconcile()
	h.r = New(h.r.Options)
	h.reconcile()
	g.Expect(failed()-failedBefore).To(BeEquivalentTo(1), "also for a manager that begins anew")
	g.Expect(begun() - begunBefore).To(BeEquivalentTo(1))
}
