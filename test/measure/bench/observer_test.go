package bench

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestTimeUntilMachineOfInstalledHostRuns(t *testing.T) {
	start := time.Now()
	installed := &aiv1beta1.Agent{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "a",
		Labels: map[string]string{aiv1beta1.InfraEnvNameLabel: "m"},
	}}
	installed.Status.DebugInfo.State = aiv1beta1.HostStatusAddedToExistingCluster
	running := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	running.Status.Phase, running.Status.NodeRef.Name = string(clusterv1.MachinePhaseRunning), "n"
	for name, test := range map[string]struct {
		seen []any
		took time.Duration
	}{
		"the Machine comes last":                {[]any{installed, running}, time.Second},
		"the Machine runs before that is known": {[]any{running, installed}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObserver()
			for i, object := range test.seen {
				o.see(object, start.Add(time.Duration(i)*time.Second))
			}
			o.see(running, start.Add(time.Minute))
			measured, unexplained := o.measured()
			g := NewWithT(t)
			g.Expect(unexplained).To(BeZero())
			g.Expect(measured[machineRuns]).To(HaveLen(1))
			g.Expect(measured[machineRuns][0].took).To(Equal(test.took))
		})
	}
}

func TestTimeUntilUpgradeIsReported(t *testing.T) {
	const before, after = "4.19.10", "4.19.11"
	shows := func(version, upgradingTo string) func(*observer, time.Time) {
		cp := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		cp.Spec.DistributionVersion, cp.Status.Upgrade.DistributionVersion = version, upgradingTo
		return func(o *observer, at time.Time) { o.see(cp, at) }
	}
	runs := func(desired *configv1.Update, newest configv1.UpdateHistory) func(*observer, time.Time) {
		v := &configv1.ClusterVersion{Spec: configv1.ClusterVersionSpec{DesiredUpdate: desired}}
		v.Status.History = []configv1.UpdateHistory{newest, {Version: before, State: configv1.CompletedUpdate}}
		return func(o *observer, at time.Time) { o.seeVersion("ns/c", v, at) }
	}
	next := &configv1.Update{Version: after}
	installed := runs(nil, configv1.UpdateHistory{Version: before, State: configv1.CompletedUpdate})
	requested := runs(next, configv1.UpdateHistory{Version: before, State: configv1.CompletedUpdate})
	begun, completed := runs(next, configv1.UpdateHistory{Version: after, State: configv1.PartialUpdate}),
		runs(next, configv1.UpdateHistory{Version: after, State: configv1.CompletedUpdate})

	// A second lies between each and the next.
	for name, test := range map[string]struct {
		seen                []func(*observer, time.Time)
		requested, reported []time.Duration
		unanswered          []string
	}{
		"until the request": {
			seen:      []func(*observer, time.Time){shows(before, ""), installed, shows("v"+after, ""), requested},
			requested: []time.Duration{time.Second},
		},
		"until the end is shown": {
			seen: []func(*observer, time.Time){
				shows(before, ""), shows(after, ""), requested, begun, shows(after, "v"+after),
				shows(after, "v"+after), completed, completed, shows(after, ""),
			},
			requested: []time.Duration{time.Second}, reported: []time.Duration{2 * time.Second},
		},
		"an end that is shown before it is seen took no time": {
			seen:      []func(*observer, time.Time){shows(after, ""), requested, begun, shows(after, "v"+after), shows(after, ""), completed},
			requested: []time.Duration{time.Second}, reported: []time.Duration{0},
		},
		"an upgrade that was never shown has no end": {
			seen:      []func(*observer, time.Time){shows(after, ""), requested, begun, shows(after, ""), completed, shows(after, "")},
			requested: []time.Duration{time.Second}, unanswered: []string{upgradeReported},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, at := newObserver(), time.Now()
			for _, see := range test.seen {
				see(o, at)
				at = at.Add(time.Second)
			}
			measured, without := o.measured()
			g := NewWithT(t)
			g.Expect(without.unexplained).To(BeEmpty())
			var unanswered []string
			for _, e := range without.unanswered {
				unanswered = append(unanswered, e.handOver)
			}
			g.Expect(unanswered).To(Equal(test.unanswered))
			g.Expect(times(measured[upgradeRequested])).To(Equal(test.requested))
			g.Expect(times(measured[upgradeReported])).To(Equal(test.reported))
		})
	}
}

func times(reactions []reaction) []time.Duration {
	var took []time.Duration
	for _, r := range reactions {
		took = append(took, r.took)
	}
	return took
}
