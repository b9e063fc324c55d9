package desired

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	conditionsv1 "github.com/openshift/custom-resource-status/conditions/v1"
	corev1 "k8s.io/api/core/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/sample"
)

func TestSeveralAgentsOfOneHost(t *testing.T) {
	ours := &aiv1beta1.ClusterReference{Namespace: sample.Namespace, Name: "cp"}
	connected := conditionsv1.Condition{Type: aiv1beta1.ConnectedCondition, Status: corev1.ConditionTrue}
	for situation, tc := range map[string]struct {
		change func(first, second *aiv1beta1.Agent)
		known  *corev1.LocalObjectReference
		wanted string
	}{
		"nothing tells them apart": {func(_, _ *aiv1beta1.Agent) {}, nil, "a"},
		"one is in touch with the service": {func(_, second *aiv1beta1.Agent) {
			second.Status.Conditions = append(second.Status.Conditions, connected)
		}, nil, "b"},
		"one is recorded, the other in touch": {func(first, _ *aiv1beta1.Agent) {
			first.Status.Conditions = append(first.Status.Conditions, connected)
		}, &corev1.LocalObjectReference{Name: "b"}, "b"},
		"one is recorded, and was bound a moment ago": {func(_, second *aiv1beta1.Agent) {
			second.Status.Inventory, second.Spec.ClusterDeploymentName = aiv1beta1.HostInventory{}, ours
		}, &corev1.LocalObjectReference{Name: "b"}, "b"},
		"one is approved, the record is lost": {func(first, second *aiv1beta1.Agent) {
			first.Status.Conditions = append(first.Status.Conditions, connected)
			second.Spec.ClusterDeploymentName, second.Spec.Approved = ours, true
		}, nil, "b"},
	} {
		t.Run(situation, func(t *testing.T) {
			first, second := sample.Agent("a", "m", sample.BootMAC), sample.Agent("b", "m", sample.BootMAC)
			tc.change(first, second)
			config := &bootstrapv1.OpenshiftAssistedConfig{Status: bootstrapv1.OpenshiftAssistedConfigStatus{AgentRef: tc.known}}
			found := Identify(&facts.Facts{Config: config, InfraMachine: sample.Metal3Machine("live-iso"), Host: sample.BareMetalHost(), Agents: []*aiv1beta1.Agent{first, second}}, nil)
			g := NewWithT(t)
			g.Expect(found.Agent).To(HaveField("Name", tc.wanted))
			g.Expect(found.Others).To(HaveLen(1))
			g.Expect(found.Others[0]).NotTo(BeIdenticalTo(found.Agent))
		})
	}
}
