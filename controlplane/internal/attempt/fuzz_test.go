package attempt

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// FuzzRetry checks that an unreadable record of a retry gives up nothing and requests nothing.
func FuzzRetry(f *testing.F) {
	for _, record := range []string{
		`{"requested":"once","givenUp":["a","b"]}`, `{"requested":"once"}`, `{"givenUp":[""]}`, `{}`, `null`, `"once"`, ``,
	} {
		f.Add(record, "once")
	}
	f.Fuzz(func(t *testing.T, record, requested string) {
		g := NewWithT(t)
		known := &facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}}
		known.ControlPlane.Annotations = map[string]string{
			controlplanev1.RetriedInstallationAnnotation: record, controlplanev1.RetryInstallationAnnotation: requested,
		}
		read, err := RecordedRetry(known)
		g.Expect(err == nil).To(BeElementOf(json.Valid([]byte(record)), false), "invalid JSON is an error")
		switch {
		case err != nil:
			g.Expect(GivesUp(known)).To(BeFalse())
			g.Expect(RetryRequested(known)).To(BeEmpty())
		case read.Requested == requested:
			g.Expect(RetryRequested(known)).To(BeEmpty(), "the request was processed")
		default:
			g.Expect(RetryRequested(known)).To(Equal(requested))
		}
	})
}
