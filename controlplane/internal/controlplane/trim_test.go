package controlplane

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOfAnAgentOnlyWhatIsReadIsCached(t *testing.T) {
	g := NewWithT(t)
	agent := &aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"inventory": "large"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec:       aiv1beta1.AgentSpec{Hostname: "rack1-u7", IgnitionConfigOverrides: "large", ClusterDeploymentName: &aiv1beta1.ClusterReference{Name: "c1"}},
	}
	agent.Status.Inventory = aiv1beta1.HostInventory{Hostname: "localhost", Interfaces: []aiv1beta1.HostInterface{{Name: "eno1"}}}
	agent.Status.DebugInfo.State = models.HostStatusKnown
	left, err := TrimAgent(agent)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(Equal(&aiv1beta1.Agent{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "v"}},
		Spec:       aiv1beta1.AgentSpec{Hostname: "rack1-u7", ClusterDeploymentName: &aiv1beta1.ClusterReference{Name: "c1"}},
		Status:     aiv1beta1.AgentStatus{Inventory: aiv1beta1.HostInventory{Hostname: "localhost"}, DebugInfo: agent.Status.DebugInfo},
	}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}
	g.Expect(TrimAgent(secret.DeepCopy())).To(Equal(secret), "nothing else is touched")
}
