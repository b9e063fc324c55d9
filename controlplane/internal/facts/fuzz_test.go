package facts

import (
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// FuzzRemediation checks that a readable record of a remediation is complete. An unreadable record causes an
// error that names its annotation.
func FuzzRemediation(f *testing.F) {
	for _, record := range []string{
		`{"machine":"m","timestamp":"2031-01-01T00:00:00Z","retryCount":1}`,
		`{"machine":"m"}`,
		`{"machine":"m","timestamp":"2031-01-01T00:00:00Z","retryCount":-1}`,
		`null`,
		`[]`,
		``,
	} {
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
