package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
)

func TestMachinesReadyIsShortUntilClusterIsInstalled(t *testing.T) {
	g := NewWithT(t)
	s := factsOf(nil)
	s.Machines = []*clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "m0"}}, {ObjectMeta: metav1.ObjectMeta{Name: "m1"}}}
	conditions.Set(s.Machines[0], condition.True(clusterv1.MachineReadyCondition, "Ready"))
	conditions.Set(s.Machines[1], condition.False(clusterv1.MachineReadyCondition, "NotReady", "no NTP at this moment"))
	c := viewOf(s).replicas().Ready()
	g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
	g.Expect(c.Message).To(
		And(
			ContainSubstring("1 Machine is not ready while the cluster is installed, see its conditions: m1"),
			ContainSubstring("m1"),
			Not(ContainSubstring("NTP")),
		),
	)

	s.Progress.Phase = "Installed"
	s.Install = installOf("adding-hosts")
	g.Expect(viewOf(s).replicas().Ready().Message).To(ContainSubstring("NTP"))
}

func TestWrongNumberOfArbitersIsReported(t *testing.T) {
	for situation, tc := range map[string]struct {
		wanted             bool
		machines, arbiters []string
		lost, message      string
	}{
		"one as requested":              {wanted: true, machines: []string{"m0", "m1", "m2"}, arbiters: []string{"m2"}},
		"none, as requested":            {machines: []string{"m0", "m1", "m2"}},
		"the arbiter is being replaced": {wanted: true, machines: []string{"m0", "m1"}},
		"a master instead of the arbiter": {
			wanted:   true,
			machines: []string{"m0", "m1", "m2"},
			message: "no Machine belongs to an arbiter: delete one of these Machines, which wipes its host, and an " +
				"arbiter takes its place: m0, m1, m2",
		},
		"the arbiter's config has no role": {
			wanted:   true,
			machines: []string{"m0", "m1", "m2"},
			lost:     "m1",
			message:  "the OpenshiftAssistedConfig of Machine m1 has the label of arbiters, but not spec.role",
		},
		"the arbiter's config has no role, one Machine missing": {
			wanted: true, machines: []string{"m1", "m2"}, lost: "m1", message: "of Machine m1 has the label",
		},
		"two arbiters": {
			wanted:   true,
			machines: []string{"m0", "m1", "m2"},
			arbiters: []string{"m1", "m2"},
			message: "the number of arbiters is 2, and spec.arbiter requests 1: delete one of these Machines, which wipes its host, and a " +
				"master takes its place: m1, m2",
		},
		"two arbiters, one Machine missing": {
			wanted: true, machines: []string{"m1", "m2"}, arbiters: []string{"m1", "m2"}, message: "the number of arbiters is 2",
		},
		"one, none requested": {
			machines: []string{"m0", "m1", "m2"}, arbiters: []string{"m0"}, message: "the number of arbiters is 1, and spec.arbiter requests 0",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g, f := NewWithT(t), factsOf(nil)
			if tc.wanted {
				f.ControlPlane.Spec.Arbiter = &controlplanev1.ArbiterSpec{}
			}
			f.Configs = map[string]*bootstrapv1.OpenshiftAssistedConfig{}
			for _, name := range tc.machines {
				m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
				conditions.Set(m, condition.True(clusterv1.MachineUpToDateCondition, "UpToDate"))
				f.Machines, f.Configs[name] = append(f.Machines, m), &bootstrapv1.OpenshiftAssistedConfig{}
			}
			for _, name := range tc.arbiters {
				f.Configs[name].Spec.Role = bootstrapv1.HostRoleArbiter
			}
			if tc.lost != "" {
				f.Configs[tc.lost].Labels = map[string]string{bootstrapv1.ArbiterLabel: ""}
			}
			c := viewOf(f).replicas().UpToDate()
			if tc.message == "" {
				g.Expect(c.Status).To(Equal(metav1.ConditionTrue))
				return
			}
			g.Expect(c).To(
				And(
					HaveField("Status", metav1.ConditionFalse),
					HaveField("Reason", controlplanev1.ArbiterMismatchReason),
					HaveField("Message", ContainSubstring(tc.message)),
				),
			)
		})
	}
}
