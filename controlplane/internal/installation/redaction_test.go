package installation

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
)

// Messages of admission webhooks reach conditions and events, without the keys in their URLs.
func TestRefusalIsRedacted(t *testing.T) {
	g := NewWithT(t)
	s := scope.New(&facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}})
	registrar := NewRegistrar(nil, nil, nil, nil, nil, writer.New(nil, nil, clock.RealClock{}), clock.RealClock{})
	refusal := apierrors.NewBadRequest("cannot reach https://img.example/?api_key=top-secret")
	_, err := registrar.refused(s, "AgentClusterInstall", refusal)
	g.Expect(err).NotTo(HaveOccurred())
	message := s.Found.Blocked(tasks.Installation).Message
	g.Expect(message).To(ContainSubstring("https://img.example/..."))
	g.Expect(message).NotTo(ContainSubstring("top-secret"))
}
