package page

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestHealthyConditionsAreNotShownAsUnmet(t *testing.T) {
	for _, tc := range []struct {
		kind, condition, status string
		unmet                   int
	}{
		{"AgentClusterInstall", "Stopped", "True", 0},
		{"AgentClusterInstall", "Stopped", "False", 0},
		{"AgentClusterInstall", "Failed", "False", 0},
		{"AgentClusterInstall", "Failed", "True", 1},
		{"AgentClusterInstall", "Completed", "False", 1},
		{"Machine", "Updating", "False", 0},
		{"Machine", "Ready", "False", 1},
	} {
		o := parse(t, "apiVersion: v1\nkind: "+tc.kind+"\nmetadata: {name: ha}\nstatus:\n  conditions:\n"+
			cond(tc.condition, tc.status, "Reason", "", 1))
		shown := objectsOf(&Input{Objects: []Object{{Unstructured: &o[0]}}, Time: now})
		NewWithT(t).Expect(shown[0].Unmet).To(Equal(tc.unmet), tc.kind+" "+tc.condition+"="+tc.status)
	}
}
