package controlplane

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/cluster-api/util/secret"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// view is what the conditions are computed from.
type view struct {
	*facts.Facts
	found *Findings
	// failure ended the reconcile early.
	failure error
	now     time.Time
	// started is when this process began to observe.
	started time.Time
}

func (v view) conditions() []metav1.Condition {
	return []metav1.Condition{
		v.available(), v.initialized(), v.releaseImageResolved(), v.installedCondition(), v.kubeconfigAvailable(), v.componentsHealthy(),
		v.machinesCreated(),
		v.machinesReady(),
		v.machinesUpToDate(),
		v.rollingOut(), v.scalingUp(), v.scalingDown(), v.remediating(), v.deletingCondition(),
	}
}

func yes(conditionType, reason string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason}
}

func no(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

func unknown(conditionType, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// blocked is the condition while a task is not done that it stands for.
func (v view) blocked(conditionType string, task Task) metav1.Condition {
	o := v.found.Blocked(task)
	return no(conditionType, o.Reason, o.Message)
}

// graceLeft is how long the API server may go on not answering, or not telling how the cluster is, before that counts.
func (v view) graceLeft() time.Duration {
	last := v.Workload.LastSuccess
	if !v.Workload.UnreadSince.IsZero() {
		last = v.Workload.UnreadSince
	}
	if last.Before(v.started) {
		last = v.started
	}
	return workload.GracePeriod - v.now.Sub(last)
}

// healthKnown tells whether the health of the cluster could be read. What could not be read is not healthy.
func (v view) healthKnown() bool { return v.Workload.Connected && v.Workload.UnreadSince.IsZero() }

func (v view) everInitialized() bool {
	return ptr.Deref(v.ControlPlane.Status.Initialization.ControlPlaneInitialized, v.Workload.Connected)
}

func (v view) available() metav1.Condition {
	const t = controlplanev1.AvailableCondition
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case v.Deleting():
		return no(t, controlplanev1.NotAvailableReason, "the control plane is being deleted")
	case !v.Installed():
		return no(t, controlplanev1.NotAvailableReason, "the cluster is not installed: the condition Installed tells how far it is and what it waits for")
	case v.healthKnown() && len(v.Workload.Unhealthy) == 0:
		return yes(t, controlplanev1.AvailableReason)
	case v.healthKnown():
		return no(t, controlplanev1.NotAvailableReason, strings.Join(v.Workload.Unhealthy, "; "))
	case v.graceLeft() > 0 && before != nil && before.Status == metav1.ConditionTrue:
		return *before
	case !v.everInitialized():
		return no(t, controlplanev1.WaitingForAPIServerReason, v.because("waiting for the cluster's API server to answer"))
	case v.graceLeft() > 0 && v.Workload.Connected && before != nil:
		return *before
	case v.graceLeft() > 0 && !v.Workload.Connected:
		return no(t, controlplanev1.ConnectionDownReason, v.because("waiting for the connection to the cluster's API server"))
	default:
		return v.healthUnknown(t)
	}
}

// healthUnknown says why nothing is known of the cluster's health.
func (v view) healthUnknown(conditionType string) metav1.Condition {
	if !v.Workload.Connected {
		return unknown(conditionType, controlplanev1.ConnectionDownReason, v.connectionDown())
	}
	return unknown(conditionType, controlplanev1.HealthUnknownReason, fmt.Sprintf("the cluster's API server answers, but its ClusterVersion, ClusterOperators or Nodes cannot be read since %s: "+
		"check that the credentials in Secret %s may read them; see the log of the manager", v.Workload.UnreadSince.UTC().Format(time.RFC3339), secret.Name(v.ClusterName(), secret.Kubeconfig)))
}

func (v view) connectionDown() string {
	if v.Workload.LastSuccess.IsZero() {
		return v.because(fmt.Sprintf("the cluster's API server has not answered for %s", workload.GracePeriod))
	}
	return v.because("the cluster's API server has not answered since " + v.Workload.LastSuccess.UTC().Format(time.RFC3339))
}

func (v view) initialized() metav1.Condition {
	if v.everInitialized() {
		return yes(controlplanev1.InitializedCondition, controlplanev1.InitializedReason)
	}
	return no(controlplanev1.InitializedCondition, controlplanev1.WaitingForAPIServerReason, "waiting for the cluster's API server to answer")
}

func (v view) releaseImageResolved() metav1.Condition {
	const t = controlplanev1.ReleaseImageResolvedCondition
	switch {
	case v.found.Blocked(ReleaseLookup) != nil:
		return v.blocked(t, ReleaseLookup)
	case v.reportedImage() != "":
		return yes(t, controlplanev1.ReleaseImageResolvedReason)
	case v.Installed():
		return unknown(t, controlplanev1.WaitingForReleaseImageReason, "the image is not known here, and not needed any more: the cluster is installed")
	case v.found.Blocked(Installation) != nil:
		return v.blocked(t, Installation)
	default:
		return no(t, controlplanev1.WaitingForReleaseImageReason, "the release image has not been looked up yet")
	}
}

func (v view) kubeconfigAvailable() metav1.Condition {
	const t = controlplanev1.KubeconfigAvailableCondition
	problem := v.found.KubeconfigProblem(v.Facts)
	switch {
	case problem != nil:
		return no(t, problem.Reason, problem.Message)
	case v.found.Kubeconfig != nil:
		c := yes(t, controlplanev1.KubeconfigAvailableReason)
		if failed := v.found.Blocked(KubeconfigRenewal); failed != nil {
			c.Message = failed.Message
		}
		return c
	case v.found.Blocked(KubeconfigCopy) != nil:
		return v.blocked(t, KubeconfigCopy)
	case v.Installed() && v.AdminKubeconfig == nil:
		return no(t, controlplanev1.WaitingForKubeconfigReason, fmt.Sprintf("Secret %s is missing, and so is assisted-service's kubeconfig: create it, type %s, with a kubeconfig in the key value",
			secret.Name(v.ClusterName(), secret.Kubeconfig), clusterv1.ClusterSecretType))
	default:
		return no(t, controlplanev1.WaitingForKubeconfigReason, "assisted-service gives the kubeconfig when the installation runs")
	}
}

func (v view) componentsHealthy() metav1.Condition {
	const t = controlplanev1.ControlPlaneComponentsHealthyCondition
	before := conditions.Get(v.ControlPlane, t)
	switch {
	case !v.everInitialized():
		return unknown(t, controlplanev1.WaitingForAPIServerReason, "waiting for the cluster's API server to answer")
	case v.healthKnown() && len(v.Workload.Unhealthy) == 0:
		return yes(t, controlplanev1.ComponentsHealthyReason)
	case v.healthKnown():
		return no(t, controlplanev1.ComponentsNotHealthyReason, strings.Join(v.Workload.Unhealthy, "; "))
	case v.graceLeft() > 0 && before != nil:
		return *before
	default:
		return v.healthUnknown(t)
	}
}

func (v view) machinesCreated() metav1.Condition {
	const t = controlplanev1.MachinesCreatedCondition
	missing := int(v.Replicas()) - len(v.found.Machines)
	switch {
	case v.Deleting():
		return no(t, clusterv1.DeletingReason, "the control plane is being deleted")
	case missing <= 0:
		return yes(t, controlplanev1.MachinesCreatedReason)
	case v.found.Blocked(MachineCreation) != nil:
		return v.blocked(t, MachineCreation)
	case v.found.Blocked(Installation) != nil:
		return v.blocked(t, Installation)
	case v.failure != nil:
		return no(t, clusterv1.InternalErrorReason, "an earlier step failed and is tried again; see the log of the manager")
	default:
		return no(t, clusterv1.ScalingUpReason, fmt.Sprintf("making %d of %d Machines", missing, v.Replicas()))
	}
}

// machinesReady names the Machines that are not Ready. What keeps each of them from it is told once the cluster is installed: before, they all
// wait for the same, which the condition Installed tells.
func (v view) machinesReady() metav1.Condition {
	const t = controlplanev1.MachinesReadyCondition
	var waiting []*clusterv1.Machine
	for _, m := range v.found.Machines {
		if !conditions.IsTrue(m, clusterv1.MachineReadyCondition) {
			waiting = append(waiting, m)
		}
	}
	if v.Installed() || len(waiting) == 0 {
		return v.aggregate(clusterv1.MachineReadyCondition, t)
	}
	return no(t, clusterv1.NotReadyReason, fmt.Sprintf("%d Machines are not ready while the cluster is installed, see their conditions: %s", len(waiting), names(waiting)))
}

// machinesUpToDate sums up the condition of the Machines, unless they could not be given what they are to be.
func (v view) machinesUpToDate() metav1.Condition {
	const t = controlplanev1.MachinesUpToDateCondition
	if v.found.Blocked(MachineSync) != nil {
		return v.blocked(t, MachineSync)
	}
	if message := v.versionMismatch(); message != "" {
		return no(t, controlplanev1.VersionMismatchReason, message)
	}
	return v.aggregate(clusterv1.MachineUpToDateCondition, t)
}

// versionMismatch says that the spec asks for another release than an installed cluster runs; it is empty when it does not.
func (v view) versionMismatch() string {
	runs := v.found.MachineVersion(v.Facts)
	wanted, err := release.ParseVersion(v.ControlPlane.Spec.Version)
	if !v.Installed() || runs == "" || err != nil || "v"+wanted.String() == runs {
		return ""
	}
	if wanted.LT(parsed(runs)) {
		return fmt.Sprintf("spec.version is v%s, but the cluster was upgraded to %s; it is never downgraded: set spec.version to %s", wanted, runs, runs)
	}
	return fmt.Sprintf("spec.version is v%s, but the cluster runs %s, and is not upgraded from here: set spec.version back to %s, or upgrade the cluster itself (oc adm upgrade). Until then "+
		"Cluster API adds workers only to MachineDeployments with the annotation %s: %s",
		wanted, runs, runs, clusterv1.MachineSetSkipPreflightChecksAnnotation, clusterv1.MachineSetPreflightCheckControlPlaneIsStable)
}

// aggregate sums up a condition of the Machines.
func (v view) aggregate(source, target string) metav1.Condition {
	if len(v.found.Machines) == 0 {
		return yes(target, clusterv1.NoReplicasReason)
	}
	c, err := conditions.NewAggregateCondition(v.found.Machines, source, conditions.TargetConditionType(target))
	if err != nil {
		return unknown(target, clusterv1.InternalErrorReason, "cannot sum up the conditions of the Machines")
	}
	return *c
}

func (v view) rollingOut() metav1.Condition {
	const t = controlplanev1.RollingOutCondition
	var outdated []*clusterv1.Machine
	for _, m := range v.found.Machines {
		if conditions.IsFalse(m, clusterv1.MachineUpToDateCondition) {
			outdated = append(outdated, m)
		}
	}
	if len(outdated) == 0 {
		return no(t, clusterv1.NotRollingOutReason, "")
	}
	c := yes(t, clusterv1.RollingOutReason)
	c.Message = fmt.Sprintf("%d Machines are not up to date: %s", len(outdated), names(outdated))
	return c
}

func (v view) scalingUp() metav1.Condition {
	const t = controlplanev1.ScalingUpCondition
	if v.Deleting() || len(v.found.Machines) >= int(v.Replicas()) {
		return no(t, clusterv1.NotScalingUpReason, "")
	}
	c := yes(t, clusterv1.ScalingUpReason)
	c.Message = fmt.Sprintf("scaling up from %d to %d Machines", len(v.found.Machines), v.Replicas())
	if blocked := v.found.Blocked(Installation); blocked != nil {
		c.Message += ": " + blocked.Message
	}
	return c
}

func (v view) scalingDown() metav1.Condition {
	const t = controlplanev1.ScalingDownCondition
	wanted := int(v.Replicas())
	if v.Deleting() {
		wanted = 0
	}
	if len(v.found.Machines) <= wanted {
		return no(t, clusterv1.NotScalingDownReason, "")
	}
	c := yes(t, clusterv1.ScalingDownReason)
	c.Message = fmt.Sprintf("scaling down from %d to %d Machines", len(v.found.Machines), wanted)
	if blocked := v.found.Blocked(ScaleDown); blocked != nil {
		c.Message += ": " + blocked.Message
	}
	return c
}

func (v view) remediating() metav1.Condition {
	const t = controlplanev1.RemediatingCondition
	var unhealthy []*clusterv1.Machine
	for _, m := range v.found.Machines {
		if conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition) {
			unhealthy = append(unhealthy, m)
		}
	}
	if len(unhealthy) == 0 {
		return no(t, clusterv1.NotRemediatingReason, "")
	}
	c := yes(t, clusterv1.RemediatingReason)
	c.Message = fmt.Sprintf("a MachineHealthCheck wants %s to be remediated, which is not done automatically: repair the host, or replace it", names(unhealthy))
	return c
}

func (v view) deletingCondition() metav1.Condition {
	const t = controlplanev1.DeletingCondition
	if !v.Deleting() {
		return no(t, controlplanev1.NotDeletingReason, "")
	}
	c := yes(t, clusterv1.DeletingReason)
	switch {
	case v.found.Blocked(Deletion) != nil:
		c.Reason, c.Message = v.found.Blocked(Deletion).Reason, v.found.Blocked(Deletion).Message
	case v.failure != nil:
		c.Message = "a step of the deletion failed and is tried again; see the log of the manager"
	}
	return c
}

// because adds to a message why there is no connection to the cluster, as far as it is known.
func (v view) because(message string) string {
	if v.Workload.Failure == nil {
		return message
	}
	return message + ": " + v.Workload.Failure.Message
}
