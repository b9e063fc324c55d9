package objects

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

func TestHealthOfVersion(t *testing.T) {
	history := []configv1.UpdateHistory{
		{State: configv1.PartialUpdate, Version: "4.20.1"},
		{State: configv1.CompletedUpdate, Version: "4.19.3"},
	}
	available := configv1.ClusterOperatorStatusCondition{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}
	for situation, tc := range map[string]struct {
		status                        configv1.ClusterVersionStatus
		problem, completed, upgrading string
	}{
		"nothing completed": {problem: "ClusterVersion is not available"},
		"with a reason": {status: configv1.ClusterVersionStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionFalse, Reason: "Waiting"},
		}}, problem: "ClusterVersion is not available (Waiting)"},
		"upgrading: the completed release counts": {status: configv1.ClusterVersionStatus{
			History:    history,
			Conditions: []configv1.ClusterOperatorStatusCondition{available},
		}, completed: "4.19.3", upgrading: "4.20.1"},
		"upgrade completed": {status: configv1.ClusterVersionStatus{
			History:    history[1:],
			Conditions: []configv1.ClusterOperatorStatusCondition{available},
		}, completed: "4.19.3"},
		"installing": {
			status: configv1.ClusterVersionStatus{History: history[:1], Conditions: []configv1.ClusterOperatorStatusCondition{available}},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := healthOfVersion(&configv1.ClusterVersion{Status: tc.status})
			NewWithT(t).Expect([]string{h.Problem, h.Release.Completed, h.Release.Upgrading}).To(Equal([]string{
				tc.problem, tc.completed,
				tc.upgrading,
			}))
		})
	}
}

func TestEtcdOf(t *testing.T) {
	g := NewWithT(t)
	since := metav1.NewTime(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	condition := func(kind configv1.ClusterStatusConditionType, status configv1.ConditionStatus,
		message string,
	) configv1.ClusterOperatorStatusCondition {
		return configv1.ClusterOperatorStatusCondition{Type: kind, Status: status, Message: message, LastTransitionTime: since}
	}
	available := condition(configv1.OperatorAvailable, configv1.ConditionTrue, "")
	healthy := etcdOf([]configv1.ClusterOperatorStatusCondition{
		available,
		condition(configv1.OperatorDegraded, configv1.ConditionFalse, "AsExpected"),
	})
	g.Expect(healthy).To(Equal(workload.EtcdOperator{Known: true, Available: true}))
	g.Expect(healthy.Settled()).To(BeTrue())
	g.Expect(workload.EtcdOperator{}.Settled()).To(BeFalse(), "unknown is not healthy")

	degraded := etcdOf([]configv1.ClusterOperatorStatusCondition{
		available,
		condition(configv1.OperatorDegraded, configv1.ConditionTrue, "n1 is unhealthy"+strings.Repeat(".", 5000)),
	})
	g.Expect(degraded.DegradedSince).To(Equal(since.Time))
	g.Expect(degraded.Degraded).To(HavePrefix("n1 is unhealthy"))
	g.Expect(len(degraded.Degraded)).To(BeNumerically("<", 1024), "bounded")
	g.Expect(degraded.Settled()).To(BeFalse())
	g.Expect(etcdOf([]configv1.ClusterOperatorStatusCondition{available, condition(configv1.OperatorProgressing, configv1.ConditionTrue,
		"")}).Settled()).To(BeFalse())
}

// The kinds are defined while they are read.
func TestUndefinedKindHasNoVersion(t *testing.T) {
	g := NewWithT(t)
	lists := 0
	c := fake.NewClientBuilder().WithScheme(conn.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			if lists++; lists == 1 {
				return apierrors.NewNotFound(schema.GroupResource{}, "")
			}
			list.SetResourceVersion("101")
			return nil
		},
	}).Build()
	version, _, err := clusterOperators.Read(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(BeEmpty(), "a watch would miss objects that are created between the two reads")
	version, _, err = clusterOperators.Read(t.Context(), c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version).To(Equal("101"))
}

func TestClockAheadDoesNotExtendEtcdGrace(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	clk := testingclock.NewFakePassiveClock(now)
	s := NewState(clk)
	degraded := func(since time.Time) health {
		return health{Etcd: workload.EtcdOperator{DegradedSince: since}}
	}
	since := func() time.Time { return s.health[1].Etcd.DegradedSince }

	ahead := now.Add(time.Hour)
	s.record(1, degraded(ahead))
	g.Expect(since()).To(Equal(now))
	now = now.Add(time.Minute)
	clk.SetTime(now)
	s.record(1, degraded(ahead)) // read again, with another message
	g.Expect(since()).To(Equal(now.Add(-time.Minute)))
	s.record(1, health{})
	g.Expect(since()).To(BeZero())
	s.record(1, degraded(now.Add(-time.Second)))
	g.Expect(since()).To(Equal(now.Add(-time.Second)), "a correct clock is used")
}
