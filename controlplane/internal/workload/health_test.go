package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
)

func TestHealthOfVersion(t *testing.T) {
	history := []configv1.UpdateHistory{{State: configv1.PartialUpdate, Version: "4.20.1"}, {State: configv1.CompletedUpdate, Version: "4.19.3"}}
	available := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}
	for situation, tc := range map[string]struct {
		status                        configv1.ClusterVersionStatus
		problem, completed, upgrading string
	}{
		"nothing completed": {problem: "ClusterVersion is not available"},
		"it says why":       {status: configv1.ClusterVersionStatus{Conditions: []configv1.ClusterOperatorStatusCondition{{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse, Reason: "Waiting"}}}, problem: "ClusterVersion is not available (Waiting)"},
		"an upgrade runs: the release is the completed one": {status: configv1.ClusterVersionStatus{History: history, Conditions: []configv1.ClusterOperatorStatusCondition{available}}, completed: "4.19.3", upgrading: "4.20.1"},
		"an upgrade was completed":                          {status: configv1.ClusterVersionStatus{History: history[1:], Conditions: []configv1.ClusterOperatorStatusCondition{available}}, completed: "4.19.3"},
		"the installation runs": {
			status: configv1.ClusterVersionStatus{History: history[:1], Conditions: []configv1.ClusterOperatorStatusCondition{available}},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := healthOfVersion(&configv1.ClusterVersion{Status: tc.status})
			NewWithT(t).Expect([]string{h.problem, h.release.completed, h.release.upgrading}).To(Equal([]string{tc.problem, tc.completed, tc.upgrading}))
		})
	}
}
