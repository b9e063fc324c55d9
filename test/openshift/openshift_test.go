package openshift

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestPauseReportsWhetherContextEnded(t *testing.T) {
	for name, d := range map[string]time.Duration{"no time": 0, "negative": -time.Second, "a moment": time.Nanosecond} {
		NewWithT(t).Expect(Pause(t.Context(), d)).To(BeTrue(), name)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, d := range map[string]time.Duration{"no time": 0, "negative": -time.Second, "an hour": time.Hour} {
		for range 20 { // a timer that has already fired would win every second time
			NewWithT(t).Expect(Pause(ended, d)).To(BeFalse(), name)
		}
	}
}

func TestConditionsAreWrittenOnChange(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(configv1.Install(scheme)).To(Succeed())
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: Etcd}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(operator).WithStatusSubresource(operator).Build()
	g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(operator), operator)).To(Succeed())
	version := func(conditions ...Condition) string {
		g.Expect(WriteConditions(t.Context(), api, operator, conditions)).To(Succeed())
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(operator), operator)).To(Succeed())
		return operator.ResourceVersion
	}
	available := NewCondition(configv1.OperatorAvailable, true, "AsExpected", "")
	healthy := NewCondition(configv1.OperatorDegraded, false, "AsExpected", "")
	degraded := NewCondition(configv1.OperatorDegraded, true, "Simulated", "A bug.")
	first := version(available, healthy, degraded)
	g.Expect(operator.Status.Conditions).To(HaveLen(2))
	g.Expect(FindCondition(operator, configv1.OperatorDegraded).Message).To(Equal("A bug."), "the last condition of a type counts")
	g.Expect(version(available, healthy, degraded)).To(Equal(first), "the same conditions are not written again")
	g.Expect(version(available, healthy)).NotTo(Equal(first))
	unavailable := NewCondition(configv1.OperatorAvailable, false, "NoPods", "")
	g.Expect(version(unavailable, healthy)).NotTo(Equal(version(available, healthy)), "only the first condition changes")
	g.Expect(FindCondition(operator, configv1.OperatorDegraded).Status).To(Equal(configv1.ConditionFalse))

	_ = version(Condition{Type: configv1.OperatorDegraded})
	g.Expect(FindCondition(operator, configv1.OperatorDegraded)).To(BeNil(), "a condition without status is removed")
	g.Expect(FindCondition(operator, configv1.OperatorAvailable)).NotTo(BeNil())
}

func TestTransitionTimeChangesWithStatus(t *testing.T) {
	g := NewWithT(t)
	old := metav1.Unix(1000, 0)
	conditions := []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: old},
	}
	g.Expect(SetCondition(&conditions, NewCondition(configv1.OperatorAvailable, true, "AsExpected", ""))).To(BeTrue())
	g.Expect(conditions[0].LastTransitionTime).To(Equal(old), "only the reason changed")
	g.Expect(SetCondition(&conditions, NewCondition(configv1.OperatorAvailable, true, "AsExpected", ""))).To(BeFalse())
	g.Expect(SetCondition(&conditions, NewCondition(configv1.OperatorAvailable, false, "AsExpected", ""))).To(BeTrue())
	g.Expect(conditions[0].LastTransitionTime).NotTo(Equal(old))
}

func TestContentIsWrittenOnce(t *testing.T) {
	g := NewWithT(t)
	w, writes := Written{}, 0
	failure := errors.New("no quorum")
	write := func(err error) func() error { return func() error { writes++; return err } }
	g.Expect(w.Once("etcd", "a", write(failure))).To(MatchError(failure))
	g.Expect(w.Once("etcd", "a", write(nil))).To(Succeed())
	g.Expect(writes).To(Equal(2), "a failed write is repeated")
	g.Expect(w.Once("etcd", "a", write(nil))).To(Succeed())
	g.Expect(writes).To(Equal(2))
	g.Expect(w.Once("etcd", "b", write(nil))).To(Succeed())
	g.Expect(w.Once("other", "b", write(nil))).To(Succeed())
	g.Expect(writes).To(Equal(4))
}
