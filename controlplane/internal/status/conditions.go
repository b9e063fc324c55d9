package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// View contains the input of the conditions.
type View struct {
	*facts.Facts
	Found *tasks.Findings
	// Failure ended the reconcile early.
	Failure error
	Now     time.Time
	// Started is when this process began to observe.
	Started time.Time
}

func (v *View) conditions() []metav1.Condition {
	return []metav1.Condition{
		v.available(), v.initialized(), v.releaseImageResolved(), v.installedCondition(), v.kubeconfigAvailable(), v.componentsHealthy(),
		v.machinesCreated(),
		v.machinesReady(),
		v.machinesUpToDate(),
		v.rollingOut(), v.scalingUp(), v.scalingDown(), v.hostsReleasing(), v.remediating(), v.deletingCondition(),
	}
}

// blocked returns the condition of a task that is blocked, with the recorded reason and message.
func (v *View) blocked(conditionType string, task tasks.Task) metav1.Condition {
	o := v.Found.Blocked(task)
	return condition.False(conditionType, o.Reason, o.Message)
}

// graceLeft returns the time until a cluster whose API server does not answer, or whose health cannot be
// read, counts as not healthy.
func (v *View) graceLeft() time.Duration {
	last := v.Workload.LastSuccess
	if !v.Workload.UnreadSince.IsZero() {
		last = v.Workload.UnreadSince
	}
	if last.Before(v.Started) {
		last = v.Started
	}
	return workload.GracePeriod - v.Now.Sub(last)
}

// healthKnown reports whether the health of the cluster could be read. Unknown health does not count as
// healthy.
func (v *View) healthKnown() bool { return v.Workload.Connected && v.Workload.UnreadSince.IsZero() }

func (v *View) healthy() bool { return v.healthKnown() && len(v.Workload.Unhealthy) == 0 }

// beforeAvailable are the reasons of Available while a cluster has not been available yet.
var beforeAvailable = []string{
	controlplanev1.WaitingForInstallationReason,
	controlplanev1.InstallationFailedReason,
	controlplanev1.WaitingForAPIServerReason,
	controlplanev1.WaitingForHealthyClusterReason,
}

// comingUp returns the time that a new cluster has left to become available: one that was just installed, or
// was just moved to this hub. API servers restart at the end of an installation, and the conditions of the
// operators may be older than the state in assisted-service. Zero: the time has passed, or the cluster is
// available.
func (v *View) comingUp() time.Duration {
	available, installed := conditions.Get(v.ControlPlane, controlplanev1.AvailableCondition),
		conditions.Get(v.ControlPlane, controlplanev1.InstalledCondition)
	if !v.Installed() || v.healthy() || available == nil || !slices.Contains(beforeAvailable, available.Reason) {
		return 0
	}
	if installed == nil || installed.Status != metav1.ConditionTrue { // this reconcile reports the installation
		return workload.GracePeriod
	}
	return max(0, workload.GracePeriod-v.Now.Sub(installed.LastTransitionTime.Time))
}

func (v *View) everInitialized() bool {
	return ptr.Deref(v.ControlPlane.Status.Initialization.ControlPlaneInitialized, v.Workload.Connected)
}

func (v *View) available() metav1.Condition {
	const t = controlplanev1.AvailableCondition
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case v.Deleting():
		return condition.False(t, controlplanev1.NotAvailableReason, "the control plane is being deleted")
	case !v.Installed():
		return condition.False(t, v.whyNotInstalled(), "the cluster is not installed: "+v.installation().Summary())
	case v.healthy():
		return condition.True(t, controlplanev1.AvailableReason)
	case v.comingUp() > 0 && v.Workload.Connected:
		return condition.False(t, controlplanev1.WaitingForHealthyClusterReason, "the cluster is installed, and not available yet: "+
			cmp.Or(bound.Join(v.Workload.Unhealthy, ""), "its ClusterVersion, ClusterOperators or Nodes cannot be read"))
	case !v.healthKnown() && v.graceLeft() > 0 && before != nil && before.Status == metav1.ConditionTrue:
		return *before
	case v.restartLeft(t) > 0:
		return v.restarting(t)
	case v.healthKnown():
		return condition.False(t, controlplanev1.NotAvailableReason, bound.Join(v.Workload.Unhealthy, ""))
	case !v.everInitialized(), v.comingUp() > 0:
		return condition.False(t, controlplanev1.WaitingForAPIServerReason, v.because("waiting for the cluster's API server to answer"))
	case v.graceLeft() > 0 && v.Workload.Connected && before != nil:
		return *before
	case v.graceLeft() > 0 && !v.Workload.Connected:
		return condition.False(t, controlplanev1.ConnectionDownReason, v.because("waiting for the connection to the cluster's API server"))
	default:
		return v.healthUnknown(t)
	}
}

// whyNotInstalled returns the reason of Available before the installation has succeeded. A Cluster mirrors
// Available alone: its users distinguish a failed installation from a running one by the reason.
func (v *View) whyNotInstalled() string {
	if v.Phase == controlplanev1.InstallationFailed {
		return controlplanev1.InstallationFailedReason
	}
	return controlplanev1.WaitingForInstallationReason
}

// healthUnknown returns the condition that names the cause of the unknown health of the cluster.
func (v *View) healthUnknown(conditionType string) metav1.Condition {
	if !v.Workload.Connected {
		return condition.Unknown(conditionType, controlplanev1.ConnectionDownReason, v.connectionDown())
	}
	return condition.Unknown(conditionType, controlplanev1.HealthUnknownReason, fmt.Sprintf("the cluster's API server answers, but its "+
		"ClusterVersion, ClusterOperators or Nodes cannot be read since %s: "+
		"check that the credentials in Secret %s may read them; see the log of the manager", v.Workload.UnreadSince.UTC().Format(time.RFC3339),
		secret.Name(v.ClusterName(), secret.Kubeconfig)))
}

func (v *View) connectionDown() string {
	if v.Workload.LastSuccess.IsZero() {
		return v.because(fmt.Sprintf("the cluster's API server has not answered for %s", workload.GracePeriod))
	}
	return v.because("the cluster's API server has not answered since " + v.Workload.LastSuccess.UTC().Format(time.RFC3339))
}

func (v *View) initialized() metav1.Condition {
	if v.everInitialized() {
		return condition.True(controlplanev1.InitializedCondition, controlplanev1.InitializedReason)
	}
	return condition.False(
		controlplanev1.InitializedCondition, controlplanev1.WaitingForAPIServerReason, "waiting for the cluster's API server to answer",
	)
}

func (v *View) releaseImageResolved() metav1.Condition {
	const t = controlplanev1.ReleaseImageResolvedCondition
	switch {
	case v.Found.Blocked(tasks.ReleaseLookup) != nil:
		return v.blocked(t, tasks.ReleaseLookup)
	case v.reportedImage() != "":
		return condition.True(t, controlplanev1.ReleaseImageResolvedReason)
	case v.Installed():
		return condition.Unknown(
			t, controlplanev1.WaitingForReleaseImageReason, "the image is not known here, and not needed any more: the cluster is installed",
		)
	case v.Found.Blocked(tasks.Installation) != nil:
		return v.blocked(t, tasks.Installation)
	default:
		return condition.False(t, controlplanev1.WaitingForReleaseImageReason, "the release image is not resolved yet")
	}
}

func (v *View) kubeconfigAvailable() metav1.Condition {
	const t = controlplanev1.KubeconfigAvailableCondition
	problem := v.Found.KubeconfigProblem(v.Facts)
	switch {
	case problem != nil:
		return condition.False(t, problem.Reason, problem.Message)
	case v.Found.Kubeconfig != nil:
		c := condition.True(t, controlplanev1.KubeconfigAvailableReason)
		var messages []string
		for _, task := range []tasks.Task{
			tasks.KubeconfigRenewal, tasks.KubeconfigAuthorities, tasks.KubeconfigOwner, tasks.KubeconfigWithdrawal,
		} {
			if failed := v.Found.Blocked(task); failed != nil {
				messages = append(messages, failed.Message)
			}
		}
		c.Message = strings.Join(messages, "; ")
		return c
	case v.Found.Blocked(tasks.KubeconfigCopy) != nil:
		return v.blocked(t, tasks.KubeconfigCopy)
	case v.Installed() && !ownership.HasAdminKubeconfig(v.Facts):
		return condition.False(t, controlplanev1.WaitingForKubeconfigReason, fmt.Sprintf("Secret %s is missing, and so is "+
			"assisted-service's kubeconfig: create the Secret, type %s, with a kubeconfig in the key value",
			secret.Name(v.ClusterName(), secret.Kubeconfig), clusterv1.ClusterSecretType))
	default:
		return condition.False(t, controlplanev1.WaitingForKubeconfigReason, "assisted-service gives the kubeconfig when the installation runs")
	}
}

func (v *View) componentsHealthy() metav1.Condition {
	const t = controlplanev1.ControlPlaneComponentsHealthyCondition
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case !v.everInitialized():
		return condition.Unknown(t, controlplanev1.WaitingForAPIServerReason, "waiting for the cluster's API server to answer")
	case v.healthy():
		return condition.True(t, controlplanev1.ComponentsHealthyReason)
	case !v.healthKnown() && v.graceLeft() > 0 && before != nil:
		return *before
	case v.restartLeft(t) > 0:
		return v.restarting(t)
	case v.healthKnown():
		return condition.False(t, controlplanev1.ComponentsNotHealthyReason, bound.Join(v.Workload.Unhealthy, ""))
	default:
		return v.healthUnknown(t)
	}
}

func (v *View) deletingCondition() metav1.Condition {
	const t = controlplanev1.DeletingCondition
	if !v.Deleting() {
		return condition.False(t, controlplanev1.NotDeletingReason, "")
	}
	c := condition.True(t, clusterv1.DeletingReason)
	switch {
	case v.Found.Blocked(tasks.Deletion) != nil:
		c.Reason, c.Message = v.Found.Blocked(tasks.Deletion).Reason, v.Found.Blocked(tasks.Deletion).Message
	case v.Failure != nil:
		c.Message = "a step of the deletion failed and is tried again; see the log of the manager"
	}
	return c
}

// because adds the known cause of the missing connection to the cluster to a message.
func (v *View) because(message string) string {
	if v.Workload.Failure == nil {
		return message
	}
	return message + ": " + v.Workload.Failure.Message
}

// installation returns the input of the condition Installed.
func (v *View) installation() *installed.View {
	view := &installed.View{Facts: v.Facts, Present: v.Found.Machines, Failure: v.Failure, Now: v.Now}
	if v.Found.Blocked(tasks.Installation) != nil {
		view.Blocked = ptr.To(v.blocked(controlplanev1.InstalledCondition, tasks.Installation))
	}
	return view
}

// installedCondition reports the state of the installation, its blocker or failure, and the reason if a
// requested retry is refused.
func (v *View) installedCondition() metav1.Condition {
	c := v.installation().Condition()
	if refused := v.Found.Blocked(tasks.Retry); refused != nil {
		c.Message = strings.TrimPrefix(c.Message+"; "+refused.Message, "; ")
	}
	return c
}
