package installed

import (
	"testing"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// TestForeignMessagesAreRedacted: messages of assisted-service and of admission webhooks reach conditions and
// events. Keys in their URLs must not.
func TestForeignMessagesAreRedacted(t *testing.T) {
	g := NewWithT(t)
	const message = "cannot reach https://img.example/?api_key=top-secret"
	install := &hiveext.AgentClusterInstall{}
	install.Status.DebugInfo = hiveext.DebugInfo{State: "error", StateInfo: message}
	install.Status.Conditions = []hivev1.ClusterInstallCondition{
		{Type: hiveext.ClusterSpecSyncedCondition, Status: corev1.ConditionFalse, Message: message},
	}
	agent := &aiv1beta1.Agent{}
	agent.Status.DebugInfo.StateInfo = message

	for _, message := range []string{
		installCondition(install, hiveext.ClusterSpecSyncedCondition).Message, assisted.Observe(install).StateInfo, Describe(agent),
	} {
		g.Expect(message).To(ContainSubstring("https://img.example/..."))
		g.Expect(message).NotTo(ContainSubstring("top-secret"))
	}
}
