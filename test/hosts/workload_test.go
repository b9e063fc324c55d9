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

// Who plays the operator of etcd tells of it as soon as it exists, and does not tell all: what is missing would be
// taken for true, for ever.
func TestAnOperatorOfWhichOthersToldFirstIsCompleted(t *testing.T) {
	g, scheme := NewWithT(t), runtime.NewScheme()
	g.Expect(configv1.Install(scheme)).To(Succeed())
	told := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver"}}
	told.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{
		Type:   configv1.OperatorProgressing,
		Status: configv1.ConditionTrue, Reason: "NodeInstaller",
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(told).WithStatusSubresource(told).Build()
	statusOf := func() configv1.ClusterOperatorStatus {
		operator := &configv1.ClusterOperator{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(told), operator)).To(Succeed())
		return operator.Status
	}
	g.Expect(writeOperator(t.Context(), c, "kube-apiserver", "4.20.1")).To(Succeed())
	completed := statusOf()
	g.Expect(completed.Versions).To(ConsistOf(configv1.OperandVersion{Name: "operator", Version: "4.20.1"}))
	g.Expect(completed.Conditions).To(ConsistOf(
		And(HaveField("Type", configv1.OperatorAvailable), HaveField("Status", configv1.ConditionTrue)),
		And(HaveField("Type", configv1.OperatorProgressing), HaveField("Status", configv1.ConditionTrue), HaveField("Reason", "NodeInstaller")),
		And(HaveField("Type", configv1.OperatorDegraded), HaveField("Status", configv1.ConditionFalse)),
		And(HaveField("Type", configv1.OperatorUpgradeable), HaveField("Status", configv1.ConditionTrue)),
	))
	g.Expect(writeOperator(t.Context(), c, "kube-apiserver", "4.20.2")).To(Succeed())
	g.Expect(statusOf()).To(Equal(completed), "it belongs to whoever upgrades the cluster")
}
