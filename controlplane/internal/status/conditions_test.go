package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

func TestUnreadableClusterIsNotHealthy(t *testing.T) {
	const available, healthy = controlplanev1.AvailableCondition, controlplanev1.ControlPlaneComponentsHealthyCondition
	now := time.Now()
	for situation, tc := range map[string]struct {
		before  metav1.ConditionStatus
		unread  time.Duration
		outcome metav1.ConditionStatus
	}{
		"healthy, unread for a moment":        {metav1.ConditionTrue, time.Second, metav1.ConditionTrue},
		"unhealthy, unread for a moment":      {metav1.ConditionFalse, time.Second, metav1.ConditionFalse},
		"unknown, unread for a moment":        {metav1.ConditionUnknown, time.Second, metav1.ConditionUnknown},
		"never reported, unread for a moment": {"", time.Second, metav1.ConditionUnknown},
		"healthy, unread for too long":        {metav1.ConditionTrue, workload.GracePeriod, metav1.ConditionUnknown},
		"unhealthy, unread for too long":      {metav1.ConditionFalse, workload.GracePeriod, metav1.ConditionUnknown},
		"healthy and read":                    {metav1.ConditionTrue, 0, metav1.ConditionTrue},
		"unhealthy, read again as healthy":    {metav1.ConditionFalse, 0, metav1.ConditionTrue},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
				if tc.before != "" {
					cp.Status.Conditions = []metav1.Condition{{Type: available, Status: tc.before}, {Type: healthy, Status: tc.before}}
				}
			})
			s.Workload = workload.State{Connected: true, LastSuccess: now}
			if tc.unread > 0 {
				s.Workload.UnreadSince = now.Add(-tc.unread)
			}
			v := viewOf(s)
			v.Now, v.Started = now, now.Add(-time.Hour)
			for _, c := range []metav1.Condition{v.available(), v.componentsHealthy()} {
				g.Expect(c.Status).To(Equal(tc.outcome), c.Type)
				if tc.unread == workload.GracePeriod {
					g.Expect(c.Reason).To(Equal(controlplanev1.HealthUnknownReason))
					g.Expect(c.Message).To(ContainSubstring("cluster1-kubeconfig"))
				}
			}
		})
	}
}

// TestNewClusterGetsTimeToBecomeAvailable: Argo CD ends a sync as soon as a condition reports a failure. A
// successful installation must report none, although API servers restart at its end. assisted-service may
// also report the end earlier than the cluster.
func TestNewClusterGetsTimeToBecomeAvailable(t *testing.T) {
	now := time.Now()
	connected, down := workload.State{Connected: true, LastSuccess: now}, workload.State{LastSuccess: now.Add(-time.Second)}
	unhealthy := connected
	unhealthy.Unhealthy = []string{"ClusterOperator etcd is not available"}
	unread := connected
	unread.UnreadSince = now.Add(-time.Second)
	longDown := down
	longDown.LastSuccess = now.Add(-time.Hour)
	for situation, tc := range map[string]struct {
		before   string
		since    time.Duration // 0: this reconcile reports the installation
		workload workload.State
		status   metav1.ConditionStatus
		reason   string
		message  string
		wait     time.Duration
	}{
		"available at once": {
			controlplanev1.WaitingForInstallationReason, 0, connected, metav1.ConditionTrue, controlplanev1.AvailableReason, "", 0,
		},
		"operators not available yet": {
			controlplanev1.WaitingForInstallationReason,
			0,
			unhealthy,
			metav1.ConditionFalse,
			controlplanev1.WaitingForHealthyClusterReason,
			"ClusterOperator etcd",
			workload.GracePeriod,
		},
		"operators not readable yet": {
			controlplanev1.WaitingForInstallationReason,
			0,
			unread,
			metav1.ConditionFalse,
			controlplanev1.WaitingForHealthyClusterReason,
			"cannot be read",
			workload.GracePeriod - time.Second,
		},
		"operators still not available": {
			controlplanev1.WaitingForHealthyClusterReason,
			time.Minute,
			unhealthy,
			metav1.ConditionFalse,
			controlplanev1.WaitingForHealthyClusterReason,
			"ClusterOperator etcd",
			4 * time.Minute,
		},
		"operators not available for too long": {
			controlplanev1.WaitingForHealthyClusterReason,
			workload.GracePeriod,
			unhealthy,
			metav1.ConditionFalse,
			controlplanev1.NotAvailableReason,
			"ClusterOperator etcd",
			0,
		},
		"was available before": {
			controlplanev1.NotAvailableReason,
			time.Minute,
			unhealthy,
			metav1.ConditionFalse,
			controlplanev1.NotAvailableReason,
			"ClusterOperator etcd",
			0,
		},
		"the installation failed before": {
			controlplanev1.InstallationFailedReason,
			time.Second,
			unhealthy,
			metav1.ConditionFalse,
			controlplanev1.WaitingForHealthyClusterReason,
			"ClusterOperator etcd",
			workload.GracePeriod - time.Second,
		},
		"the API server restarts": {
			controlplanev1.WaitingForInstallationReason,
			0,
			down,
			metav1.ConditionFalse,
			controlplanev1.WaitingForAPIServerReason,
			"API server",
			workload.GracePeriod - time.Second,
		},
		"the API server restarts before operators are available": {
			controlplanev1.WaitingForHealthyClusterReason,
			time.Minute,
			down,
			metav1.ConditionFalse,
			controlplanev1.WaitingForAPIServerReason,
			"API server",
			4 * time.Minute,
		},
		"the API server is down after that time": {
			controlplanev1.WaitingForAPIServerReason,
			workload.GracePeriod,
			down,
			metav1.ConditionFalse,
			controlplanev1.ConnectionDownReason,
			"API server",
			workload.GracePeriod - time.Second,
		},
		"the API server is down for long": {
			controlplanev1.WaitingForAPIServerReason,
			workload.GracePeriod,
			longDown,
			metav1.ConditionUnknown,
			controlplanev1.ConnectionDownReason,
			"API server",
			0,
		},
		"the connection is lost later": {
			controlplanev1.NotAvailableReason,
			time.Minute,
			down,
			metav1.ConditionFalse,
			controlplanev1.ConnectionDownReason,
			"API server",
			workload.GracePeriod - time.Second,
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(func(cp *controlplanev1.OpenshiftAssistedControlPlane) {
				cp.Status.Installation.Phase = controlplanev1.InstallationInstalled
				cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
				cp.Status.Conditions = []metav1.Condition{condition.False(controlplanev1.AvailableCondition, tc.before, "before")}
				if tc.since > 0 {
					cp.Status.Conditions = append(cp.Status.Conditions, metav1.Condition{
						Type: controlplanev1.InstalledCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-tc.since)),
					})
				}
			})
			f.Workload = tc.workload
			v := viewOf(f)
			v.Now, v.Started = now, now.Add(-2*time.Hour)
			condition := v.available()
			g.Expect(condition).To(
				And(HaveField("Status", tc.status), HaveField("Reason", tc.reason), HaveField("Message", ContainSubstring(tc.message))),
			)
			g.Expect(v.UntilChange()).To(Equal(tc.wait), "until the condition changes")
		})
	}
}

// TestAvailableDistinguishesFailedFromRunningInstallation: Cluster API mirrors Available into the Cluster,
// which may be all that a user reads.
func TestAvailableDistinguishesFailedFromRunningInstallation(t *testing.T) {
	for phase, reason := range map[controlplanev1.InstallationPhase]string{
		controlplanev1.InstallationPending:    controlplanev1.WaitingForInstallationReason,
		controlplanev1.InstallationInstalling: controlplanev1.WaitingForInstallationReason,
		controlplanev1.InstallationFailed:     controlplanev1.InstallationFailedReason,
	} {
		v := viewOf(factsOf(nil))
		v.Phase = phase
		NewWithT(t).Expect(v.available()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", reason)), string(phase))
	}
}

// TestAvailableNamesBlockerOfInstallation: the Cluster mirrors Available, and clusterctl describe shows
// nothing else.
func TestAvailableNamesBlockerOfInstallation(t *testing.T) {
	at := func(name string, stage aiv1beta1.HostStage) aiv1beta1.Agent {
		a := agentIn(name, aiv1beta1.HostStatusInstallingInProgress, "")
		a.Status.Progress.CurrentStage = stage
		return a
	}
	hosts := []aiv1beta1.Agent{
		at("a", ""),
		at("b", aiv1beta1.HostStageWritingImageToDisk),
		at("c", aiv1beta1.HostStageCopyingRegistryDataToDisk),
		at("d", aiv1beta1.HostStageWaitingForBootkube),
		at("e", aiv1beta1.HostStageRebooting),
		at("f", aiv1beta1.HostStageConfiguring), at("g", aiv1beta1.HostStageJoined), at("h", aiv1beta1.HostStageDone),
	}
	for situation, tc := range map[string]struct {
		install *hiveext.AgentClusterInstall
		hosts   []aiv1beta1.Agent
		change  func(v *View)
		message string
	}{
		"nothing is registered": {message: "waiting for assisted-service to register the cluster"},
		"the release image is unknown": {change: func(v *View) {
			v.Found.Block(tasks.Installation, controlplanev1.WaitingForReleaseImageReason, "looking it up")
		}, message: "looking it up"},
		"hosts are missing": {install: installOf("insufficient"), hosts: hosts[:1], message: "hosts bound to the cluster: 1 of 3"},
		"preparing": {
			install: installOf("preparing-for-installation"), hosts: hosts[:3], message: "preparing the installation",
		},
		"hosts are installed": {
			install: installOf("installing"),
			hosts:   hosts,
			message: "installing 8 hosts: 1 not begun, 2 writing to disk, 1 waiting for others, 3 starting from disk, 1 installed",
		},
		"finalizing": {
			install: installOf("finalizing"), hosts: hosts[6:], message: "its operators come up, after 2 hosts: 1 starting from disk, 1 installed",
		},
		"one host is installed alone": {install: installOf("installing"), hosts: hosts[1:2], message: "installing 1 host: 1 writing to disk"},
		"no Agent exists":             {install: installOf("installing"), message: "installing its hosts"},
		"a host booted the wrong image": {
			install: installOf("installing-pending-user-action"),
			message: "the installation waits for the user: info of installing-pending-user-action",
		},
		"failed": {install: installOf("error"), message: "the installation failed: info of error"},
		"a retry is refused": {
			install: installOf("error"), message: "the installation failed: info of error",
			change: func(v *View) {
				v.Found.Block(tasks.Retry, controlplanev1.RetryingInstallationReason, "not yet")
				v.Install.Status.DebugInfo.EventsURL, v.Progress.EventsURL = "", ""
			},
		},
		"a failed preparation is retried": {
			install: installOf("preparing-for-installation"), hosts: hosts[:3],
			message: "the preparation of the installation failed, and assisted-service retries it: no ignition", change: func(v *View) {
				conditions.Set(v.ControlPlane, condition.False(controlplanev1.InstalledCondition, controlplanev1.PreparationFailedReason,
					"the preparation of the installation failed, and assisted-service retries it: no ignition; events: "+v.Progress.EventsURL))
			},
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			f := factsOf(nil)
			f.Install, f.Progress, f.Agents = tc.install, assisted.Observe(tc.install), tc.hosts
			v := viewOf(f)
			if tc.change != nil {
				tc.change(v)
			}
			c := v.available()
			g.Expect(c.Status).To(Equal(metav1.ConditionFalse))
			g.Expect(c.Message).To(Equal("the cluster is not installed: " + tc.message))
			if tc.install != nil {
				tc.install.Status.Progress.TotalPercentage += 10
				tc.install.Status.DebugInfo.LogsURL = "https://svc/logs?cluster_id=1"
				f.Progress = assisted.Observe(tc.install)
			}
			g.Expect(v.available()).To(Equal(c), "no write for a percentage")
		})
	}
}
