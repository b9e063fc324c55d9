package status

import (
	"cmp"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/rollout"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

const unpauseWorkers = `oc patch machineconfigpool worker --type merge --patch '{"spec":{"paused":false}}'`

// upgraded returns the view of an installed cluster with pools and the last reported status; nil pools are
// unknown.
func upgraded(upgrading string, last controlplanev1.OpenshiftAssistedControlPlaneStatus, pools []workload.Pool) *View {
	f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
		cp.Spec.DistributionVersion = "v" + cmp.Or(upgrading, "4.20.1")
		cp.Status = last
		cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
	})
	f.Workload = workload.State{Connected: true, OpenShiftVersion: "4.20.1", Upgrading: upgrading, Pools: pools, PoolsKnown: pools != nil}
	return viewOf(f)
}

func TestPoolsAreNamedWhileAnUpgradeRuns(t *testing.T) {
	for situation, tc := range map[string]struct {
		pool  workload.Pool
		texts []string
	}{
		"workers are paused": {
			workload.Pool{Name: "worker", Paused: true}, []string{"MachineConfigPool worker is paused", "keep their release", unpauseWorkers},
		},
		"the masters are paused": {
			workload.Pool{Name: "master", Paused: true},
			[]string{"MachineConfigPool master is paused, so that the upgrade does not end", "oc patch machineconfigpool master"},
		},
		"the arbiter's pool is paused": {
			workload.Pool{Name: "arbiter", Paused: true},
			[]string{"MachineConfigPool arbiter is paused, so that the upgrade does not end", "oc patch machineconfigpool arbiter"},
		},
		"an arbiter is updated, as expected": {workload.Pool{Name: "arbiter", Behind: true}, nil},
		"workers are degraded": {
			workload.Pool{Name: "worker", Degraded: "Node w0 cannot be drained", Behind: true},
			[]string{"MachineConfigPool worker is degraded", "(Node w0 cannot be drained)", "oc describe machineconfigpool worker"},
		},
		"workers follow, as expected":       {workload.Pool{Name: "worker", Behind: true}, nil},
		"masters are updated, as expected":  {workload.Pool{Name: "master", Behind: true}, nil},
		"degraded has priority over paused": {workload.Pool{Name: "worker", Degraded: "no disk left", Paused: true}, []string{"no disk left"}},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := upgraded("4.21.0", controlplanev1.OpenshiftAssistedControlPlaneStatus{}, []workload.Pool{tc.pool})
			g.Expect(v.replicas().RollingOut().Status).To(Equal(metav1.ConditionTrue))
			for _, c := range []metav1.Condition{v.replicas().RollingOut(), v.replicas().UpToDate()} {
				if tc.texts == nil {
					g.Expect(c.Message).NotTo(ContainSubstring("MachineConfigPool"), c.Type)
				}
				for _, words := range tc.texts {
					g.Expect(c.Message).To(ContainSubstring(words), c.Type)
				}
			}
		})
	}
}

func TestManyPoolsAreCounted(t *testing.T) {
	g := NewWithT(t)
	var pools []workload.Pool
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		pools = append(pools, workload.Pool{Name: name, Paused: true, Behind: true})
	}
	c := upgraded("4.21.0", controlplanev1.OpenshiftAssistedControlPlaneStatus{}, pools).replicas().RollingOut()
	g.Expect(c.Message).To(
		And(
			ContainSubstring("MachineConfigPool c is paused"),
			Not(ContainSubstring("MachineConfigPool d")),
			HaveSuffix("; 2 more MachineConfigPools"),
		),
	)
	v := upgraded("4.21.0", controlplanev1.OpenshiftAssistedControlPlaneStatus{}, slices.Repeat(pools, 8))
	g.Expect(rollout.PoolsBehind(v.Facts)).To(HaveLen(rollout.MaxPools))
}

// TestPoolsAreNamedWhileWorkersLagBehind: workers are upgraded after the control plane, and those of a paused
// pool weeks later.
func TestPoolsAreNamedWhileWorkersLagBehind(t *testing.T) {
	type state = controlplanev1.OpenshiftAssistedControlPlaneStatus
	ended := state{Upgrade: controlplanev1.UpgradeStatus{DistributionVersion: "4.20.1"}}
	lagging := state{
		PoolsBehind: []string{"worker"},
		Conditions: []metav1.Condition{
			{Type: controlplanev1.RollingOutCondition, Status: metav1.ConditionFalse, Reason: "NotRollingOut", Message: "the last message"},
		},
	}
	for situation, tc := range map[string]struct {
		before state
		pools  []workload.Pool
		behind []string
		text   string
	}{
		"the upgrade has just ended, and workers are paused": {
			ended, []workload.Pool{{Name: "worker", Paused: true, Behind: true}}, []string{"worker"}, unpauseWorkers,
		},
		"the upgrade has just ended, and workers follow": {
			ended, []workload.Pool{{Name: "worker", Behind: true}}, []string{"worker"}, "the Nodes of MachineConfigPool worker follow",
		},
		"the upgrade has just ended, and none lags":        {ended, []workload.Pool{}, nil, ""},
		"the upgrade has just ended, and nothing is known": {ended, nil, nil, ""},
		"workers are still paused": {
			lagging, []workload.Pool{{Name: "worker", Paused: true, Behind: true}}, []string{"worker"}, unpauseWorkers,
		},
		"a worker fails": {
			lagging, []workload.Pool{{Name: "worker", Degraded: "disk full", Behind: true}}, []string{"worker"}, "disk full",
		},
		"workers are done and remain paused":                    {lagging, []workload.Pool{{Name: "worker", Paused: true}}, nil, ""},
		"workers are done, the masters get a new configuration": {lagging, []workload.Pool{{Name: "master", Behind: true}}, nil, ""},
		"the manager restarted, nothing read yet":               {lagging, nil, []string{"worker"}, "the last message"},
		"no upgrade, workers get a new configuration":           {state{}, []workload.Pool{{Name: "worker", Behind: true}}, nil, ""},
		"no upgrade, workers are paused": {
			state{}, []workload.Pool{{Name: "worker", Paused: true, Behind: true}}, nil, "",
		},
		"no upgrade, a pool is degraded": {state{}, []workload.Pool{{Name: "worker", Degraded: "disk full"}}, nil, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := upgraded("", tc.before, tc.pools)
			c := v.replicas().RollingOut()
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse), "the control plane is done")
			if tc.text == "" {
				g.Expect(c.Message).To(BeEmpty())
			}
			g.Expect(c.Message).To(ContainSubstring(tc.text))
			g.Expect(rollout.PoolsBehind(v.Facts)).To(Equal(tc.behind))
		})
	}
}

// The provider resumes its own pauses: nothing is to be done.
func TestOwnPausesAreReported(t *testing.T) {
	g := NewWithT(t)
	pool := workload.Pool{Name: "worker", Paused: true, Behind: true, PausedUntil: "v1.33.5", PausedSince: time.Unix(0, 0)}
	v := upgraded("4.21.0", controlplanev1.OpenshiftAssistedControlPlaneStatus{}, []workload.Pool{pool, {Name: "gpu", Paused: true}})
	g.Expect(v.replicas().RollingOut().Message).To(And(
		ContainSubstring("MachineConfigPool worker is paused by this provider since 1970-01-01T00:00:00Z"),
		ContainSubstring("until the control plane has completed a release with Kubernetes v1.33.5"), Not(ContainSubstring(unpauseWorkers)),
		ContainSubstring("oc patch machineconfigpool gpu"),
	))
	g.Expect(rollout.PausedPools(v.Facts)).To(ConsistOf("worker"))
	v.Workload.Pools = []workload.Pool{pool}
	g.Expect(rollout.PoolReason(v.Facts)).To(BeEmpty(), "no user action")
	v.Workload.Pools, v.Workload.PoolsKnown, v.ControlPlane.Status.PausedPools = nil, false, []string{"worker"}
	g.Expect(rollout.PausedPools(v.Facts)).To(ConsistOf("worker"), "the last known ones")
}

// TestNothingRollsOutWhileTheReleaseIsNotRequested: a user reads RollingOut before MachinesUpToDate.
func TestNothingRollsOutWhileTheReleaseIsNotRequested(t *testing.T) {
	const text = "v4.21.0 is not offered"
	for situation, tc := range map[string]struct {
		reason, upgrading string
		pending           bool
		pools             []workload.Pool
		status            metav1.ConditionStatus
		wanted            string
	}{
		"not offered": {
			reason: controlplanev1.UpgradeNotOfferedReason, status: metav1.ConditionFalse, wanted: clusterv1.NotRollingOutReason,
		},
		"an operator is degraded": {
			reason: controlplanev1.WaitingForHealthyClusterReason, status: metav1.ConditionFalse, wanted: clusterv1.NotRollingOutReason,
		},
		"a pool is degraded": {
			reason: controlplanev1.WaitingForHealthyClusterReason, pools: []workload.Pool{{Name: "worker", Degraded: "disk full"}},
			status: metav1.ConditionFalse, wanted: controlplanev1.MachineConfigPoolDegradedReason,
		},
		"requested": {
			reason: controlplanev1.UpgradeInProgressReason, pending: true, status: metav1.ConditionTrue, wanted: clusterv1.RollingOutReason,
		},
		"about to be requested": {
			reason: controlplanev1.UpgradeInProgressReason, status: metav1.ConditionFalse, wanted: clusterv1.NotRollingOutReason,
		},
		"not offered, while another upgrade runs": {
			reason: controlplanev1.UpgradeNotOfferedReason, upgrading: "4.20.5", status: metav1.ConditionTrue, wanted: clusterv1.RollingOutReason,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			v := upgraded(tc.upgrading, controlplanev1.OpenshiftAssistedControlPlaneStatus{PoolsBehind: []string{"worker"}}, tc.pools)
			v.ControlPlane.Spec.DistributionVersion = "v4.21.0"
			v.Workload.Rollout = &workload.Rollout{Pending: tc.pending}
			v.Found.Block(tasks.Upgrade, tc.reason, text)
			c := v.replicas().RollingOut()
			g.Expect(c).To(And(HaveField("Status", tc.status), HaveField("Reason", tc.wanted)))
			g.Expect(c.Message).To(And(ContainSubstring("see the condition MachinesUpToDate"), Not(ContainSubstring(text))))
			g.Expect(v.replicas().UpToDate()).To(And(
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tc.reason), HaveField("Message", text),
			))
		})
	}
}

// While the cluster cannot be read, nothing shows whether the upgrade is still blocked.
func TestBlockedUpgradeStaysWhileTheClusterIsNotReadable(t *testing.T) {
	for situation, loss := range map[string]func(*workload.State){
		"no connection, as after a restart of the manager": func(s *workload.State) { *s = workload.State{} },
		"a read failed": func(s *workload.State) { s.UnreadSince = time.Unix(1, 0) },
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			behind := controlplanev1.OpenshiftAssistedControlPlaneStatus{PoolsBehind: []string{"worker"}}
			v := upgraded("", behind, []workload.Pool{{Name: "worker", Degraded: "disk full"}})
			v.ControlPlane.Spec.DistributionVersion, v.ControlPlane.Status.DistributionVersion = "v4.21.0", "v4.20.1"
			v.Found.Block(tasks.Upgrade, controlplanev1.UpgradeNotOfferedReason, "v4.21.0 is not offered")
			before := []metav1.Condition{v.replicas().RollingOut(), v.replicas().UpToDate()}
			v.ControlPlane.Status.Conditions = before
			v.Found = &tasks.Findings{Machines: v.Found.Machines}
			g.Expect(before[0].Reason).To(Equal(controlplanev1.MachineConfigPoolDegradedReason))
			loss(&v.Workload)
			g.Expect([]metav1.Condition{v.replicas().RollingOut(), v.replicas().UpToDate()}).To(Equal(before))
			v.Workload = workload.State{Connected: true, OpenShiftVersion: "4.20.1", Upgrading: "4.21.0"}
			g.Expect(v.replicas().RollingOut().Status).To(Equal(metav1.ConditionTrue), "the upgrade was requested in the cluster")
		})
	}
}

func TestBlockedUpgradeIsNotHiddenByAnotherProblem(t *testing.T) {
	g := NewWithT(t)
	v := upgraded("", controlplanev1.OpenshiftAssistedControlPlaneStatus{}, nil)
	v.ControlPlane.Spec.DistributionVersion = "v4.21.0"
	v.Found.Block(tasks.MachineSync, clusterv1.InternalErrorReason, "a Machine is refused")
	v.Found.Block(tasks.Upgrade, controlplanev1.UpgradeNotOfferedReason, "v4.21.0 is not offered")
	g.Expect(v.replicas().UpToDate().Message).To(Equal("a Machine is refused"))
	g.Expect(v.replicas().RollingOut().Message).To(Equal("release v4.21.0 is not rolled out: v4.21.0 is not offered"))
}
