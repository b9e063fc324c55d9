package installed

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestFailingValidationsBecomeAProblem: the validations of a new host fail for a minute or two.
func TestFailingValidationsBecomeAProblem(t *testing.T) {
	now := time.Unix(100_000, 0)
	host := func(registered, bound time.Duration) aiv1beta1.Agent {
		a := agentIn("m0", "insufficient", "no NTP")
		a.CreationTimestamp = metav1.NewTime(now.Add(-registered))
		a.Status.Conditions = []conditionsv1.Condition{{
			Type: aiv1beta1.BoundCondition, Status: "True", LastTransitionTime: metav1.NewTime(now.Add(-bound)),
		}}
		return a
	}
	old := host(time.Hour, time.Hour)
	for situation, tc := range map[string]struct {
		agents []aiv1beta1.Agent
		begun  bool
		reason string
		left   time.Duration
	}{
		"a host was bound a minute ago": {
			agents: []aiv1beta1.Agent{host(time.Hour, time.Minute), old},
			reason: controlplanev1.WaitingForHostsReason, left: validationTime - time.Minute,
		},
		"a host registered a minute ago": {
			agents: []aiv1beta1.Agent{old, host(time.Minute, time.Hour)},
			reason: controlplanev1.WaitingForHostsReason, left: validationTime - time.Minute,
		},
		"all hosts were bound long ago": {agents: []aiv1beta1.Agent{old}, reason: controlplanev1.ValidationFailedReason},
		"the time ends now": {
			agents: []aiv1beta1.Agent{host(time.Hour, validationTime)}, reason: controlplanev1.ValidationFailedReason,
		},
		"a host joins an installed cluster": {
			agents: []aiv1beta1.Agent{host(time.Minute, time.Minute)}, begun: true, reason: controlplanev1.ValidationFailedReason,
		},
		"no host has a time": {agents: []aiv1beta1.Agent{agentIn("m0", "insufficient", "")}, reason: controlplanev1.ValidationFailedReason},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := &View{Facts: &facts.Facts{Agents: tc.agents}, Now: now}
			v.Begun = tc.begun
			c := v.validationFailed("validations fail")
			g.Expect(c.Reason).To(Equal(tc.reason))
			g.Expect(c.Message).To(And(HavePrefix("validations fail"), ContainSubstring("host m0")), "also while it is a wait")
			g.Expect(v.UntilValidationsCount()).To(Equal(tc.left))
		})
	}
}
