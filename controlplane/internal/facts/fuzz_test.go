package facts

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// FuzzRemediation: a record of a remediation that can be read is a whole one, and one that cannot is an error which says where it stands.
func FuzzRemediation(f *testing.F) {
	for _, record := range []string{`{"machine":"m","timestamp":"2031-01-01T00:00:00Z","retryCount":1}`, `{"machine":"m"}`, `{"machine":"m","timestamp":"2031-01-01T00:00:00Z","retryCount":-1}`, `null`, `[]`, ``} {
		f.Add(record)
	}
	f.Fuzz(func(t *testing.T, record string) {
		g := NewWithT(t)
		cp := &controlplanev1.OpenshiftAssistedControlPlane{}
		cp.Annotations = map[string]string{controlplanev1.RemediationInProgressAnnotation: record}
		read, err := RemediationIn(cp, controlplanev1.RemediationInProgressAnnotation)
		if err != nil {
			g.Expect(err).To(MatchError(ContainSubstring(controlplanev1.RemediationInProgressAnnotation)))
			g.Expect(read).To(BeNil())
			return
		}
		g.Expect(read.Machine).NotTo(BeEmpty())
		g.Expect(read.Timestamp.IsZero()).To(BeFalse())
		g.Expect(read.RetryCount).To(BeNumerically(">=", 0))
		g.Expect((&Facts{ControlPlane: cp}).LastRemediation(nil)).To(Equal(read))
	})
}

// FuzzRetry: what cannot be read of a retry gives nothing up, and asks for nothing.
func FuzzRetry(f *testing.F) {
	for _, record := range []string{`{"asked":"once","givenUp":["a","b"]}`, `{"asked":"once"}`, `{"givenUp":[""]}`, `{}`, `null`, `"once"`, ``} {
		f.Add(record, "once")
	}
	f.Fuzz(func(t *testing.T, record, asked string) {
		g := NewWithT(t)
		facts := &Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}
		facts.ControlPlane.Annotations = map[string]string{controlplanev1.RetriedInstallationAnnotation: record, controlplanev1.RetryInstallationAnnotation: asked}
		read, err := facts.RecordedRetry()
		g.Expect(err == nil).To(BeElementOf(json.Valid([]byte(record)), false), "what is no JSON is an error")
		switch {
		case err != nil:
			g.Expect(facts.GivesUp()).To(BeFalse())
			g.Expect(facts.RetryRequested()).To(BeEmpty())
		case read.Requested == asked:
			g.Expect(facts.RetryRequested()).To(BeEmpty(), "it was taken up")
		default:
			g.Expect(facts.RetryRequested()).To(Equal(asked))
		}
	})
}
