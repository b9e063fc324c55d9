package releaseimage

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/findings"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
)

// A query that is repeated, also after a restart of the manager, does not end the problem.
func TestFailedQueryStaysReportedWhileItIsRepeated(t *testing.T) {
	const image = "quay.io/ocp/release:4.19.99-x86_64"
	for situation, tc := range map[string]struct {
		failure error
		image   string
		stays   bool
	}{
		"not found":          {release.ErrNotFound, image, true},
		"no answer":          {release.ErrUnavailable, image, true},
		"another image":      {release.ErrNotFound, "quay.io/ocp/release:4.19.10-x86_64", false},
		"not queried before": {release.ErrPending, image, false},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			cp := &controlplanev1.OpenshiftAssistedControlPlane{}
			block := func(image string, err error) *findings.Outcome {
				s := scope.New(&facts.Facts{ControlPlane: cp.DeepCopy()})
				blockRelease(s, image, time.Minute, err)
				return s.Found.Blocked(tasks.Installation)
			}
			failed := block(image, tc.failure)
			cp.Status.Conditions = []metav1.Condition{{
				Type: controlplanev1.InstalledCondition, Status: metav1.ConditionFalse, Reason: failed.Reason, Message: failed.Message,
			}}
			repeated := block(tc.image, release.ErrPending)
			if tc.stays {
				g.Expect(repeated).To(Equal(failed))
				return
			}
			g.Expect(repeated.Reason).To(Equal(controlplanev1.WaitingForReleaseImageReason))
			g.Expect(repeated.Message).To(ContainSubstring(tc.image))
		})
	}
}
