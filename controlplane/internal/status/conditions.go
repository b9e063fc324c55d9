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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/health"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// View contains the input of the conditions.
type View struct {
	*facts.Facts
	Found *tasks.Findings
	// Removal returns the situation of the Machines that are being deleted.
	Removal func() (*removal.Situation, error)
	// Failure ended the reconcile early.
	Failure error
	Now     time.Time
	// Started is when this process began to observe.
	Started time.Time
}

// health returns the view on the health of the cluster.
func (v *View) health() *health.View {
	return &health.View{Facts: v.Facts, Now: v.Now, Started: v.Started}
}

// replicas returns the view on the Machines.
func (v *View) replicas() *replicas.View {
	return &replicas.View{Facts: v.Facts, Found: v.Found, Removal: v.Removal, Failure: v.Failure}
}

func (v *View) conditions() []metav1.Condition {
	m := v.replicas()
	return []metav1.Condition{
		v.available(), v.initialized(), v.releaseImageResolved(), v.installedCondition(), v.kubeconfigAvailable(), v.componentsHealthy(),
		m.Created(),
		m.Ready(),
		m.UpToDate(),
		m.RollingOut(), m.ScalingUp(), m.ScalingDown(), m.HostsReleasing(), m.Remediating(), v.deletingCondition(),
	}
}

func (v *View) available() metav1.Condition {
	const t = controlplanev1.AvailableCondition
	h := v.health()
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case v.Deleting():
		return condition.False(t, controlplanev1.NotAvailableReason, "the control plane is being deleted")
	case !v.Installed():
		return condition.False(t, v.whyNotInstalled(), "the cluster is not installed: "+v.installation().Summary())
	case h.Healthy():
		return condition.True(t, controlplanev1.AvailableReason)
	case h.ComingUp() > 0 && v.Workload.Connected:
		return condition.False(t, controlplanev1.WaitingForHealthyClusterReason, "the cluster is installed, and not available yet: "+
			cmp.Or(bound.Join(v.Workload.Unhealthy, ""), "its ClusterVersion, ClusterOperators or Nodes cannot be read"))
	case !h.Known() && h.GraceLeft() > 0 && before != nil && before.Status == metav1.ConditionTrue:
		return *before
	case h.RestartLeft(t) > 0:
		return h.Restarting(t)
	case h.Known():
		return condition.False(t, controlplanev1.NotAvailableReason, bound.Join(v.Workload.Unhealthy, ""))
	case !h.Initialized(), h.ComingUp() > 0:
		return condition.False(t, controlplanev1.WaitingForAPIServerReason, h.Because("waiting for the cluster's API server to answer"))
	case h.GraceLeft() > 0 && v.Workload.Connected && before != nil:
		return *before
	case h.GraceLeft() > 0 && !v.Workload.Connected:
		return condition.False(t, controlplanev1.ConnectionDownReason, h.Because("waiting for the connection to the cluster's API server"))
	default:
		return h.Unknown(t)
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

func (v *View) initialized() metav1.Condition {
	if v.health().Initialized() {
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
		return condition.Blocked(t, v.Found.Blocked(tasks.ReleaseLookup))
	case v.reportedImage() != "":
		return condition.True(t, controlplanev1.ReleaseImageResolvedReason)
	case v.Installed():
		return condition.Unknown(
			t, controlplanev1.WaitingForReleaseImageReason, "the image is not known here, and not needed any more: the cluster is installed",
		)
	case v.Found.Blocked(tasks.Installation) != nil:
		return condition.Blocked(t, v.Found.Blocked(tasks.Installation))
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
		if c.Message == "" && reportsUntried(v) {
			return *conditions.Get(v.ControlPlane, t)
		}
		return c
	case v.Found.Blocked(tasks.KubeconfigCopy) != nil:
		return condition.Blocked(t, v.Found.Blocked(tasks.KubeconfigCopy))
	case v.Installed() && !ownership.HasAdminKubeconfig(v.Facts):
		return condition.False(t, controlplanev1.WaitingForKubeconfigReason, fmt.Sprintf("Secret %s is missing, and so is "+
			"assisted-service's kubeconfig: create the Secret, type %s, with a kubeconfig in the key value",
			secret.Name(v.ClusterName(), secret.Kubeconfig), clusterv1.ClusterSecretType))
	default:
		return condition.False(t, controlplanev1.WaitingForKubeconfigReason, "assisted-service supplies the kubeconfig when the installation "+
			"runs")
	}
}

// reportsUntried reports whether the status has a problem of the kubeconfig that an earlier process found, and this one has not
// tried the kubeconfig yet. Without it, each restart would end the problem with an Event, and soon report it again.
func reportsUntried(v *View) bool {
	tried := v.Workload.Connected || v.Workload.Failure != nil || !v.Workload.LastSuccess.IsZero()
	reported := conditions.Get(v.ControlPlane, controlplanev1.KubeconfigAvailableCondition)
	return !tried && v.health().GraceLeft() > 0 && reported != nil && slices.Contains(foundByTrial, reported.Reason)
}

// foundByTrial are the problems of a kubeconfig that only a connection shows.
var foundByTrial = []string{
	controlplanev1.KubeconfigUnauthorizedReason, controlplanev1.KubeconfigUntrustedReason, controlplanev1.KubeconfigNotOursReason,
}

func (v *View) componentsHealthy() metav1.Condition {
	const t = controlplanev1.ControlPlaneComponentsHealthyCondition
	h := v.health()
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case !h.Initialized():
		return condition.Unknown(t, controlplanev1.WaitingForAPIServerReason, "waiting for the cluster's API server to answer")
	case h.Healthy():
		return condition.True(t, controlplanev1.ComponentsHealthyReason)
	case !h.Known() && h.GraceLeft() > 0 && before != nil:
		return *before
	case h.RestartLeft(t) > 0:
		return h.Restarting(t)
	case h.Known():
		return condition.False(t, controlplanev1.ComponentsNotHealthyReason, bound.Join(v.Workload.Unhealthy, ""))
	default:
		return h.Unknown(t)
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
		c.Message = "a step of the deletion failed. The provider retries: see the log of the manager"
	}
	return c
}

// installation returns the input of the condition Installed.
func (v *View) installation() *installed.View {
	view := &installed.View{Facts: v.Facts, Present: v.Found.Machines, Failure: v.Failure, Now: v.Now}
	if v.Found.Blocked(tasks.Installation) != nil {
		view.Blocked = ptr.To(condition.Blocked(controlplanev1.InstalledCondition, v.Found.Blocked(tasks.Installation)))
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
