package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// Messages of assisted-service and of admission webhooks lead into conditions and events: without the keys in their URLs.
func TestMessagesOfOthersAreRedacted(t *testing.T) {
	g := NewWithT(t)
	const told = "cannot reach https://img.example/?api_key=top-secret"
	install := &hiveext.AgentClusterInstall{}
	install.Status.DebugInfo = hiveext.DebugInfo{State: "error", StateInfo: told}
	install.Status.Conditions = []hivev1.ClusterInstallCondition{{Type: hiveext.ClusterSpecSyncedCondition, Status: corev1.ConditionFalse, Message: told}}
	agent := &aiv1beta1.Agent{}
	agent.Status.DebugInfo.StateInfo = told
	s := newScope(&facts.Facts{ControlPlane: &controlplanev1.OpenshiftAssistedControlPlane{}})
	_, err := s.rejected("AgentClusterInstall", apierrors.NewBadRequest(told))
	g.Expect(err).NotTo(HaveOccurred())

	for _, message := range []string{
		installCondition(install, hiveext.ClusterSpecSyncedCondition).Message, assisted.Observe(install).StateInfo, describe(agent), s.found.Blocked(Installation).Message,
	} {
		g.Expect(message).To(ContainSubstring("https://img.example/..."))
		g.Expect(message).NotTo(ContainSubstring("top-secret"))
	}
}
