package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

// Messages of admission webhooks reach conditions and events, without the keys in their URLs.
func TestRefusalIsRedacted(t *testing.T) {
	g := NewWithT(t)
	s := scope.New(&facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}})
	refusal := apierrors.NewBadRequest("cannot reach https://img.example/?api_key=top-secret")
	_, err := New(Options{}).rejected(s, "AgentClusterInstall", refusal)
	g.Expect(err).NotTo(HaveOccurred())
	message := s.Found.Blocked(status.Installation).Message
	g.Expect(message).To(ContainSubstring("https://img.example/..."))
	g.Expect(message).NotTo(ContainSubstring("top-secret"))
}
