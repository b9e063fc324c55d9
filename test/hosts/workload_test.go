package hosts

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A simulated etcd operator reports as soon as the object exists, and not all conditions. Missing ones would be
// taken for true for ever.
func TestMissingConditionsOfOperatorsAreAdded(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(configv1.Install(scheme)).To(Succeed())
	existing := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}}
	existing.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type:   configv1.OperatorProgressing,
		Status: configv1.ConditionTrue, Reason: "NodeInstaller",
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing).WithStatusSubresource(existing).Build()
	statusOf := func() configv1.ClusterOperatorStatus {
		operator := &configv1.ClusterOperator{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(existing), operator)).To(Succeed())
		return operator.Status
	}
	g.Expect(writeOperator(t.Context(), c, "kube-apiserver", "4.20.1")).To(Succeed())
	completed := statusOf()
	g.Expect(completed.Versions).To(ConsistOf(configv1.OperandVersion{Name: "operator", Version: "4.20.1"},
		configv1.OperandVersion{Name: "kube-apiserver", Version: "1.33.5"}))
	g.Expect(completed.Conditions).To(ConsistOf(
		And(HaveField("Type", configv1.OperatorAvailable), HaveField("Status", configv1.ConditionTrue)),
		And(HaveField("Type", configv1.OperatorProgressing), HaveField("Status", configv1.ConditionTrue), HaveField("Reason", "NodeInstaller")),
		And(HaveField("Type", configv1.OperatorDegraded), HaveField("Status", configv1.ConditionFalse)),
		And(HaveField("Type", configv1.OperatorUpgradeable), HaveField("Status", configv1.ConditionTrue)),
	))
	g.Expect(writeOperator(t.Context(), c, "kube-apiserver", "4.20.2")).To(Succeed())
	g.Expect(statusOf()).To(Equal(completed), "it belongs to the client that upgrades the cluster")
}
