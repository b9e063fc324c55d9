package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

func TestCauseStandsInOneCondition(t *testing.T) {
	g, f := NewWithT(t), factsOf(nil)
	v := viewOf(f)
	const cause = "Secret pull does not exist. Create it"
	v.Found.Block(tasks.Installation, controlplanev1.PullSecretMissingReason, cause)
	cp := f.ControlPlane.DeepCopy()
	v.Compose(cp)
	messages := map[string]string{}
	for _, c := range cp.Status.Conditions {
		messages[c.Type] = c.Message
	}
	g.Expect(messages).To(HaveKeyWithValue(controlplanev1.InstalledCondition, cause))
	g.Expect(messages).To(HaveKeyWithValue(controlplanev1.AvailableCondition, ContainSubstring(cause)), "the Cluster mirrors it")
	for _, dependent := range []string{controlplanev1.ReleaseImageResolvedCondition, controlplanev1.MachinesCreatedCondition} {
		g.Expect(messages).To(HaveKeyWithValue(dependent, "see the condition Installed"))
	}
	g.Expect(messages[controlplanev1.ScalingUpCondition]).To(HaveSuffix("Machines: see the condition Installed"))
	g.Expect(cp.Status.ProblemReason).To(Equal(controlplanev1.PullSecretMissingReason))
}

func TestOnlyWholeMessagesAreReplaced(t *testing.T) {
	all := []metav1.Condition{
		condition.False(controlplanev1.InstalledCondition, controlplanev1.FinalizingReason, "etcd"),
		condition.False(controlplanev1.KubeconfigAvailableCondition, controlplanev1.WaitingForKubeconfigReason, "waits for etcd"),
		condition.False(clusterv1.ScalingUpCondition, clusterv1.NotScalingUpReason, ""),
		condition.False(controlplanev1.AvailableCondition, controlplanev1.NotAvailableReason, ""),
	}
	refer(all)
	NewWithT(t).Expect(all).To(HaveExactElements(
		HaveField("Message", "etcd"), HaveField("Message", "waits for etcd"), HaveField("Message", ""), HaveField("Message", ""),
	))
}
