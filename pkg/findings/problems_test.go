package findings

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProblemsAreReportedWhenTheirReasonChanges(t *testing.T) {
	missing := metav1.Condition{Type: "Installed", Reason: "PullSecretMissing", Message: "create Secret pull-secret"}
	reworded := metav1.Condition{Type: "Installed", Reason: "PullSecretMissing", Message: "create Secret other"}
	refused := metav1.Condition{Type: "HostIdentified", Reason: "HostRefused", Message: "Agent a has other MAC addresses"}
	named := metav1.Condition{Type: "HostIdentified", Reason: "HostRefused", Message: "BareMetalHost lab/rack1-u7 has no MAC address"}
	ended := Event{
		Type: "Normal", Reason: ProblemEndedReason, Message: "the condition Installed no longer reports PullSecretMissing", OfStatus: true,
	}
	for situation, tc := range map[string]struct {
		host          string
		before, after []metav1.Condition
		wanted        []Event
	}{
		"a problem begins": {after: []metav1.Condition{missing}, wanted: []Event{
			{Type: "Warning", Reason: "PullSecretMissing", Message: "create Secret pull-secret", OfStatus: true},
		}},
		"nothing changes":          {before: []metav1.Condition{missing}, after: []metav1.Condition{missing}},
		"only the message changes": {before: []metav1.Condition{missing}, after: []metav1.Condition{reworded}},
		"the problem ends":         {before: []metav1.Condition{missing}, wanted: []Event{ended}},
		"another problem replaces it, on a known host": {
			host: "rack1-u7", before: []metav1.Condition{missing}, after: []metav1.Condition{refused}, wanted: []Event{
				{Type: "Warning", Reason: "HostRefused", Message: "rack1-u7: Agent a has other MAC addresses", OfStatus: true},
				{Type: "Normal", Reason: ProblemEndedReason, Message: "rack1-u7: " + ended.Message, OfStatus: true},
			},
		},
		"the message names the host": {host: "rack1-u7", after: []metav1.Condition{named}, wanted: []Event{
			{Type: "Warning", Reason: "HostRefused", Message: named.Message, OfStatus: true},
		}},
	} {
		t.Run(situation, func(t *testing.T) {
			var f Findings[string]
			f.ProblemEvents(tc.host, tc.before, tc.after)
			NewWithT(t).Expect(f.Events()).To(Equal(tc.wanted))
		})
	}
}

func TestProblemOfAnotherEventIsNotReportedTwice(t *testing.T) {
	g := NewWithT(t)
	var f Findings[string]
	f.StatusEvent("Warning", "HostRefused", "two servers")
	f.ProblemEvents("", nil, []metav1.Condition{{Type: "HostIdentified", Reason: "HostRefused", Message: "two servers"}})
	g.Expect(f.Events()).To(HaveLen(1))
}
