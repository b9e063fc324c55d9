package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

func TestWhatCannotBeReadIsNotHealthy(t *testing.T) {
	const available, healthy = controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition
	now := time.Now()
	for situation, tc := range map[string]struct {
		before  metav1.ConditionStatus
		unread  time.Duration
		outcome metav1.ConditionStatus
	}{
		"healthy, and unread for a moment":     {metav1.ConditionTrue, time.Second, metav1.ConditionTrue},
		"unhealthy, and unread for a moment":   {metav1.ConditionFalse, time.Second, metav1.ConditionFalse},
		"unknown, and unread for a moment":     {metav1.ConditionUnknown, time.Second, metav1.ConditionUnknown},
		"never told, and unread for a moment":  {"", time.Second, metav1.ConditionUnknown},
		"healthy, and unread for too long":     {metav1.ConditionTrue, facts.GracePeriod, metav1.ConditionUnknown},
		"unhealthy, and unread for too long":   {metav1.ConditionFalse, facts.GracePeriod, metav1.ConditionUnknown},
		"healthy, and read":                    {metav1.ConditionTrue, 0, metav1.ConditionTrue},
		"unhealthy, and read again as healthy": {metav1.ConditionFalse, 0, metav1.ConditionTrue},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
				if tc.before != "" {
					cp.Status.Conditions = []metav1.Condition{{Type: available, Status: tc.before}, {Type: healthy, Status: tc.before}}
				}
			})
			s.Workload = facts.Workload{Connected: true, LastSuccess: now}
			if tc.unread > 0 {
				s.Workload.UnreadSince = now.Add(-tc.unread)
			}
			v := viewOf(s)
			v.Now, v.Started = now, now.Add(-time.Hour)
			for _, c := range []metav1.Condition{v.available(), v.componentsHealthy()} {
				g.Expect(c.Status).To(Equal(tc.outcome), c.Type)
				if tc.unread == facts.GracePeriod {
					g.Expect(c.Reason).To(Equal(controlplanev1.HealthUnknownReason))
					g.Expect(c.Message).To(ContainSubstring("cluster1-kubeconfig"))
				}
			}
		})
	}
}

// Cluster API mirrors Available into the Cluster, which may be all that somebody looks at.
func TestAvailableTellsAFailedInstallationFromOneThatGoesOn(t *testing.T) {
	for phase, reason := range map[controlplanev1.InstallationPhase]string{
		controlplanev1.InstallationPending: controlplanev1.WaitingForInstallationReason, controlplanev1.InstallationInstalling: controlplanev1.WaitingForInstallationReason,
		controlplanev1.InstallationFailed: controlplanev1.InstallationFailedReason,
	} {
		v := viewOf(factsOf(nil))
		v.Phase = phase
		NewWithT(t).Expect(v.available()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason)), string(phase))
	}
}
