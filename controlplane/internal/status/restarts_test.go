package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// TestPlannedRestartIsNoFailureUntilItsLimit: the restart of a single host also restarts the only API server,
// for longer than the grace period. A successful upgrade must raise no alert, and must not be degraded in
// Argo CD.
func TestPlannedRestartIsNoFailureUntilItsLimit(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	const single, two, three = 1, 2, 3
	upgrade, reconfigured := "v4.20.1", []string{"Node n0 is being brought to another machine configuration"}
	down := workload.State{LastSuccess: now.Add(-20 * time.Minute)}
	justDown := workload.State{LastSuccess: now.Add(-time.Minute)}
	managerRestarted := workload.State{}
	notServing := workload.State{Connected: true, LastSuccess: now, Unhealthy: []string{"ClusterOperator kube-apiserver is not available"}}
	unread := workload.State{Connected: true, LastSuccess: now, UnreadSince: now.Add(-6 * time.Minute)}
	with := func(w workload.State, restarts []string) workload.State { w.Restarts = restarts; return w }
	yes, unknownFor := metav1.ConditionTrue, func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	for situation, tc := range map[string]struct {
		hosts    int32
		upgrade  string
		workload workload.State
		before   metav1.ConditionStatus
		reason   string
		since    metav1.Time
		want     metav1.ConditionStatus
		why      string
		message  string
		left     time.Duration
	}{
		"one host, no restart planned: failure after the grace period": {
			single,
			"",
			down,
			yes,
			"Available",
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ConnectionDownReason,
			"has not answered since",
			0,
		},
		"one host upgrades, away for a minute: unchanged": {
			single, upgrade, justDown, yes, "Available", unknownFor(time.Hour), yes, "Available", "", 4 * time.Minute,
		},
		"one host upgrades, away for 20 minutes: expected": {
			single, upgrade, down, yes, "Available", unknownFor(time.Hour), metav1.ConditionUnknown, controlplanev1.ControlPlaneRestartingReason,
			"Control plane restarting, as is expected of 1 host: the cluster is being upgraded to v4.20.1. Waiting up to 60 minutes", time.Hour,
		},
		"one host gets another machine configuration: expected": {
			single,
			"",
			with(down, reconfigured),
			yes,
			"Available",
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"Node n0 is being brought to another machine configuration",
			time.Hour,
		},
		"still away within the limit": {
			single,
			upgrade,
			down,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(59 * time.Minute),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"",
			time.Minute,
		},
		"away beyond the limit": {
			single,
			upgrade,
			down,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ConnectionDownReason,
			"has not answered since",
			0,
		},
		"reported beyond the limit: does not begin again": {
			single,
			upgrade,
			down,
			metav1.ConditionUnknown,
			controlplanev1.ConnectionDownReason,
			unknownFor(2 * time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ConnectionDownReason,
			"",
			0,
		},
		"the manager restarts meanwhile: still expected": {
			single,
			"",
			managerRestarted,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(30 * time.Minute),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"as reported",
			30 * time.Minute,
		},
		"the API server answers between restarts, operators not available": {
			single,
			upgrade,
			notServing,
			yes,
			"Available",
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"ClusterOperator kube-apiserver is not available",
			time.Hour,
		},
		"operators not available beyond the limit": {
			single,
			upgrade,
			notServing,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(time.Hour),
			metav1.ConditionFalse,
			controlplanev1.NotAvailableReason,
			"kube-apiserver",
			0,
		},
		"not available before the upgrade": {
			single,
			upgrade,
			notServing,
			metav1.ConditionFalse,
			controlplanev1.NotAvailableReason,
			unknownFor(time.Minute),
			metav1.ConditionFalse,
			controlplanev1.NotAvailableReason,
			"",
			0,
		},
		"the operator rolls out a revision": {
			single,
			"",
			with(notServing, []string{"ClusterOperator kube-apiserver rolls out another revision"}),
			yes,
			"Available",
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"rolls out",
			time.Hour,
		},
		"answers after the restart, operators recover": {
			single,
			"",
			notServing,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(time.Minute),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"the planned restart has ended, ClusterOperators recover; ClusterOperator kube-apiserver is not available",
			59 * time.Minute,
		},
		"answers after the restart, operators do not recover within the limit": {
			single,
			"",
			notServing,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(time.Hour),
			metav1.ConditionFalse,
			controlplanev1.NotAvailableReason,
			"kube-apiserver",
			0,
		},
		"answers after the restart, operators cannot be read": {
			single,
			"",
			unread,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(10 * time.Minute),
			metav1.ConditionUnknown,
			controlplanev1.HealthUnknownReason,
			"",
			0,
		},
		"no restart is planned or reported: operators not available": {
			single, "", notServing, yes, "Available", unknownFor(time.Hour), metav1.ConditionFalse, controlplanev1.NotAvailableReason,
			"kube-apiserver", 0,
		},
		"two hosts upgrade: shorter limit": {
			two,
			upgrade,
			down,
			yes,
			"Available",
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"of 2 hosts",
			30 * time.Minute,
		},
		"two hosts upgrade, beyond the limit": {
			two,
			upgrade,
			down,
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			unknownFor(30 * time.Minute),
			metav1.ConditionUnknown,
			controlplanev1.ConnectionDownReason,
			"",
			0,
		},
		"two hosts answer and do not serve": {
			two, upgrade, notServing, yes, "Available", unknownFor(time.Hour), metav1.ConditionFalse, controlplanev1.NotAvailableReason, "", 0,
		},
		"three hosts upgrade: shortest limit": {
			three,
			upgrade,
			down,
			yes,
			"Available",
			unknownFor(time.Hour),
			metav1.ConditionUnknown,
			controlplanev1.ControlPlaneRestartingReason,
			"of 3 hosts",
			15 * time.Minute,
		},
		"three hosts, nothing planned: at once": {
			three, "", down, yes, "Available", unknownFor(time.Hour), metav1.ConditionUnknown, controlplanev1.ConnectionDownReason, "", 0,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Spec.Replicas = ptr.To(tc.hosts)
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
				cp.Status.Upgrade.DistributionVersion = tc.upgrade
				for _, of := range []string{controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition} {
					cp.Status.Conditions = append(cp.Status.Conditions, metav1.Condition{
						Type: of, Status: tc.before, Reason: tc.reason, LastTransitionTime: tc.since, Message: "as reported",
					})
				}
			})
			f.Workload = tc.workload
			if f.Workload.Connected {
				f.Workload.OpenShiftVersion, f.Workload.Upgrading = "4.19.3", "4.20.1"
				if tc.upgrade == "" {
					f.Workload.Upgrading = ""
				}
			}
			v := viewOf(f)
			v.Now, v.Started = now, now.Add(-2*time.Hour)
			g.Expect(v.available()).To(
				And(HaveField("Status", tc.want), HaveField("Reason", tc.why), HaveField("Message", ContainSubstring(tc.message))),
			)
			if tc.why == controlplanev1.ControlPlaneRestartingReason {
				g.Expect(v.componentsHealthy()).To(And(HaveField("Status", tc.want), HaveField("Reason", tc.why)))
			}
			g.Expect(v.UntilChange()).To(Equal(tc.left), "until something else is reported")
		})
	}
}
