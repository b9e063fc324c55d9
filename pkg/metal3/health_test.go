package metal3

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
)

// The conditions are those that the Bare Metal Operator 0.13 writes.
func TestHealth(t *testing.T) {
	for situation, tc := range map[string]struct {
		conditions        string
		critical, warning bool
	}{
		"older operator":   {`[]`, false, false},
		"healthy":          {`[{"type":"Healthy","status":"True","reason":"Healthy"}]`, false, false},
		"unknown":          {`[{"type":"Healthy","status":"Unknown","reason":"Unknown"}]`, false, false},
		"warning":          {`[{"type":"Healthy","status":"False","reason":"Warning"}]`, false, true},
		"critical error":   {`[{"type":"Ready","status":"True"},{"type":"Healthy","status":"False","reason":"CriticalError"}]`, true, false},
		"another problem":  {`[{"type":"Ready","status":"False","reason":"CriticalError"}]`, false, false},
		"critical, solved": {`[{"type":"Healthy","status":"True","reason":"CriticalError"}]`, false, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g, host := NewWithT(t), &Host{}
			g.Expect(json.Unmarshal([]byte(`{"status":{"conditions":`+tc.conditions+`}}`), host)).To(Succeed())
			g.Expect(CriticalHealth(host)).To(Equal(tc.critical))
			g.Expect(HealthWarning(host)).To(Equal(tc.warning))
			if tc.critical || tc.warning {
				g.Expect(Unhealthy(host)).NotTo(BeEmpty())
			} else {
				g.Expect(Unhealthy(host)).To(BeEmpty())
			}
		})
	}
}
