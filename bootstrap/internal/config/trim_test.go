package config

import (
	"testing"

	. "github.com/onsi/gomega"
	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Without it every restart would tell each Agent again what it was told.
func TestTrimAgentKeepsTheRecordOfWhatItWasTold(t *testing.T) {
	g := NewWithT(t)
	told := metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply}
	service := metav1.ManagedFieldsEntry{Manager: "assisted-service", Operation: metav1.ManagedFieldsOperationUpdate}
	agent := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{service, told}}}
	_, err := TrimAgent(agent)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(agent.ManagedFields).To(Equal([]metav1.ManagedFieldsEntry{told}))
}
