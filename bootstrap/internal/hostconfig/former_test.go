package hostconfig

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
)

// left adds what is left of the host's former Machine: an Agent that is being deleted.
func (w *world) left(name, mac string) *aiv1beta1.Agent {
	w.t.Helper()
	agent := discovered(name, "former", mac)
	agent.Finalizers = []string{"agent.agent-install.openshift.io/ai-deprovision"}
	agent.Spec.Approved, agent.Spec.ClusterDeploymentName = true, &aiv1beta1.ClusterReference{Namespace: namespace, Name: "c"}
	w.create(agent)
	w.remove(w.agent(name))
	return w.agent(name)
}

// cannotBeCleaned has assisted-service say that it does not reach the cluster of an Agent.
func (w *world) cannotBeCleaned(agent *aiv1beta1.Agent) {
	w.t.Helper()
	w.change(agent, func() {
		agent.Status.Conditions = append(agent.Status.Conditions, conditionsv1.Condition{
			Type: aiv1beta1.CleanupCondition, Status: corev1.ConditionFalse, Message: "Get \"https://user:secret@api.c.example:6443/api\": no route to host",
		})
	})
}

// TestAgentThatCannotBeTakenOutOfItsCluster is about a host that is given to another Machine while assisted-service
// cannot take it out of its former cluster: registered then, it would be forgotten.
func TestAgentThatCannotBeTakenOutOfItsCluster(t *testing.T) {
	w := booted(t)
	agent := w.left("a", bootMAC)
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).To(ContainSubstring("Agent a of its former Machine is still being deleted"))
	w.Expect(w.agent("a").Annotations).NotTo(HaveKey(assisted.SkipSpokeCleanupAnnotation), "its Node is taken out of the cluster first")
	w.Expect(w.event()).To(BeEmpty(), "it is not refused as another host with the same BMC address")

	w.cannotBeCleaned(agent)
	w.reconcile()
	w.Expect(w.agent("a").Annotations).To(HaveKey(assisted.SkipSpokeCleanupAnnotation), "nothing holds it up any more")
	told := w.event()
	w.Expect(told).To(And(ContainSubstring("Agent a"), ContainSubstring("no route to host"), ContainSubstring("delete it")))
	w.Expect(told).NotTo(ContainSubstring("secret"))
	w.reconcile()
	w.Expect(w.event()).To(BeEmpty(), "it is told once")

	w.letGo("a", &aiv1beta1.Agent{})
	w.reconcile()
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).NotTo(ContainSubstring("former"))
}

// TestAgentOfAnotherHostsFormerMachine is none of this Machine's business.
func TestAgentOfAnotherHostsFormerMachine(t *testing.T) {
	w := booted(t)
	w.cannotBeCleaned(w.left("a", "02:00:00:00:00:66"))
	w.reconcile()
	w.Expect(w.agent("a").Annotations).NotTo(HaveKey(assisted.SkipSpokeCleanupAnnotation))
	w.lasts(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.WaitingForHostReason)
	w.Expect(w.message(bootstrapv1.HostIdentifiedCondition)).NotTo(ContainSubstring("former"))
}
