package hostconfig

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/measuretest"
)

func TestStagesAreMeasuredWhenHostIsInstalled(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	host := func(installed metav1.ConditionStatus, without ...string) *bootstrapv1.OpenshiftAssistedConfig {
		c := &bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		for i, stage := range []string{
			bootstrapv1.DataSecretAvailableCondition, bootstrapv1.HostIdentifiedCondition, bootstrapv1.HostApprovedCondition,
			bootstrapv1.HostInstalledCondition,
		} {
			status, at := metav1.ConditionTrue, created.Add(time.Duration(i*i)*time.Minute)
			if stage == bootstrapv1.HostInstalledCondition {
				status = installed
			}
			if len(without) == 0 || without[0] != stage {
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: stage, Status: status, LastTransitionTime: metav1.NewTime(at)})
			}
		}
		return c
	}
	all := []measure.Stage{
		{Name: "total", Took: 9 * time.Minute}, {Name: "discovery", Took: time.Minute}, {
			Name: "approval",
			Took: 3 * time.Minute,
		}, {Name: "installation", Took: 5 * time.Minute},
	}
	for situation, tc := range map[string]struct {
		before, after *bootstrapv1.OpenshiftAssistedConfig
		wanted        []measure.Stage
	}{
		"installed":                {host(metav1.ConditionFalse), host(metav1.ConditionTrue), all},
		"one stage unknown":        {host(metav1.ConditionFalse), host(metav1.ConditionTrue, bootstrapv1.HostApprovedCondition), all[:2]},
		"being installed":          {host(metav1.ConditionFalse), host(metav1.ConditionFalse), nil},
		"installed before":         {host(metav1.ConditionTrue), host(metav1.ConditionTrue), nil},
		"installed on another hub": {host(metav1.ConditionTrue, bootstrapv1.HostInstalledCondition), host(metav1.ConditionTrue), nil},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			stages := stagesOfHost(tc.before, tc.after)
			g.Expect(stages).To(HaveLen(len(tc.wanted)))
			for i, stage := range tc.wanted {
				g.Expect(stages[i]).To(Equal(stage))
			}
		})
	}
}

func TestProblemOfHostIsMeasuredOnce(t *testing.T) {
	w := booted(t)
	count := func() float64 {
		value, err := measuretest.Count("capi_openshift_agent_problems_total",
			map[string]string{"kind": "OpenshiftAssistedConfig", "reason": bootstrapv1.HostRefusedReason})
		w.Expect(err).NotTo(HaveOccurred())
		return value
	}
	before := count()
	w.create(discovered("a", "m", "02:00:00:00:00:66"))
	w.reconcile()
	w.reconcile()
	w.wants(bootstrapv1.HostIdentifiedCondition, metav1.ConditionFalse, bootstrapv1.HostRefusedReason)
	w.Expect(count() - before).To(BeEquivalentTo(1))
}
