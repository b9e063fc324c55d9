package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// left adds the Agent of the host's former Machine, which is being deleted.
func (w *world) left(name, mac string) *aiv1beta1.Agent {
	w.t.Helper()
	agent := discovered(name, "former", mac)
	agent.Finalizers = []string{"agent.agent-install.openshift.io/ai-deprovision"}
	agent.Spec.Approved, agent.Spec.ClusterDeploymentName = true, &aiv1beta1.ClusterReference{Namespace: namespace, Name: "c"}
	w.create(agent)
	w.remove(w.agent(name))
	return w.agent(name)
}

// cannotBeCleaned makes assisted-service report that it does not reach the cluster of an Agent.
func (w *world) cannotBeCleaned(agent *aiv1beta1.Agent) {
	w.t.Helper()
	w.change(agent, func() {
		agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
			Type: aiv1beta1.CleanupCondition, Status: corev1.ConditionFalse, Message: "Get \"https://user:secret@api.c.example:6443/api\": no " +
				"route to host",
		})
	})
}

// TestFormerAgentThatCannotBeRemoved: the host is assigned to another Machine while assisted-service cannot
// remove it from its former cluster. A host that registers during that time would be lost.
func TestFormerAgentThatCannotBeRemoved(t *testing.T) {
	w := booted(t)
	agent := w.left("a", bootMAC)
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).To(ContainSubstring("Agent a of its former Machine is still being deleted"))
	w.Expect(w.agent("a").Annotations).NotTo(HaveKey(assisted.SkipSpokeCleanupAnnotation), "its Node is removed from the cluster first")
	w.Expect(w.event()).To(BeEmpty(), "not refused as another host with the same BMC address")

	w.cannotBeCleaned(agent)
	w.reconcile()
	w.Expect(w.agent("a").Annotations).To(HaveKey(assisted.SkipSpokeCleanupAnnotation), "the deletion is not blocked any more")
	event := w.event()
	w.Expect(event).To(And(ContainSubstring("Agent a"), ContainSubstring("no route to host"), ContainSubstring("delete it")))
	w.Expect(event).NotTo(ContainSubstring("secret"))
	w.reconcile()
	w.Expect(w.event()).To(BeEmpty(), "reported once")

	w.removeFinalizers("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).NotTo(ContainSubstring("former"))
}

// TestAgentOfAnotherHostsFormerMachine does not concern this Machine.
func TestAgentOfAnotherHostsFormerMachine(t *testing.T) {
	w := booted(t)
	w.cannotBeCleaned(w.left("a", "02:00:00:00:00:66"))
	w.reconcile()
	w.Expect(w.agent("a").Annotations).NotTo(HaveKey(assisted.SkipSpokeCleanupAnnotation))
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).NotTo(ContainSubstring("former"))
}
