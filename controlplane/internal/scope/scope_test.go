package scope

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

// A phase records a released host in its situation. The phases that follow decide by the facts of the reconcile.
func TestPhasesDoNotShareTheRemoval(t *testing.T) {
	g := NewWithT(t)
	s := New(&facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{controlplanev1.ReleasedHostsAnnotation: `[{"node":"n0"}]`},
	}}})
	first, err := s.Removal()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.ReleasedHosts).To(HaveLen(1))
	first.ReleasedHosts = nil
	second, err := s.Removal()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.ReleasedHosts).To(HaveLen(1))

	s.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] = "["
	_, err = New(s.Facts).Removal()
	g.Expect(err).To(MatchError(ContainSubstring(controlplanev1.ReleasedHostsAnnotation)))
}
