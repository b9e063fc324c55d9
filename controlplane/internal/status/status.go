// Package status computes what an OpenshiftAssistedControlPlane reports: conditions, counts and versions, from the
// facts of a reconcile and what its phases found. It has no client, and no clock.
package status

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/attempt"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/condition"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/rollout"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Compose writes the status into a copy of the stored control plane.
func (v *View) Compose(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	if cp.Status.Initialization.ControlPlaneInitialized == nil && v.Workload.Connected {
		cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	if !v.Paused() { // a paused reconcile observes nothing else
		v.composeNumbers(&cp.Status)
		for _, condition := range v.conditions() {
			conditions.Set(cp, condition)
		}
		v.composePreflight(cp)
		v.composeOptional(cp)
		v.composeEtcd(cp)
		refer(cp.Status.Conditions)
		cp.Status.ProblemReason = ""
		if settling(cp, v.Now) == 0 {
			cp.Status.ProblemReason = problemReason(cp.Status.Conditions, v.Deleting())
		}
	}
	conditions.Set(cp, v.PausedCondition())
	bound.Conditions(cp.Status.Conditions)
}

// composeOptional sets the conditions that exist only while they report a problem.
func (v *View) composeOptional(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	of := v.installation()
	for conditionType, c := range map[string]*metav1.Condition{
		controlplanev1.CertificatesApprovedCondition: certificatesRefused(v.Found),
		controlplanev1.RegistrationHealthyCondition:  of.Registration(),
		controlplanev1.HostsProgressingCondition:     of.HostsProgressing(),
		controlplanev1.TopologyUpgradeableCondition:  v.topologyUpgradeable(),
		controlplanev1.ValidationsEnforcedCondition:  v.validationsEnforced(),
	} {
		if c != nil {
			conditions.Set(cp, *c)
		} else {
			conditions.Delete(cp, conditionType)
		}
	}
}

// certificatesRefused returns the condition CertificatesApproved while a request is left; nil otherwise. Most clusters never
// have one.
func certificatesRefused(found *tasks.Findings) *metav1.Condition {
	if left := found.Blocked(tasks.KubeletApproval); left != nil {
		return ptr.To(condition.Blocked(controlplanev1.CertificatesApprovedCondition, left))
	}
	return nil
}

// UntilChange returns the time until a condition changes without an event; zero: never.
func (v *View) UntilChange() time.Duration {
	if v.Paused() {
		return 0
	}
	of := v.installation()
	return condition.Soonest(
		v.untilAnswerCounts(), of.UntilHostLags(), v.health().ComingUp(), of.UntilWorkersCount(), of.UntilValidationsCount(),
		settling(v.ControlPlane, v.Now),
		v.health().UntilRestartCounts(), v.untilDegradedCounts(), v.untilNodeCounts(),
	)
}

// untilAnswerCounts returns the time until the silence of assisted-service or of the cluster counts; zero:
// never.
func (v *View) untilAnswerCounts() time.Duration {
	switch {
	case !v.Installed(), ownership.Imported(v.Facts) && v.health().Known():
		_, left := v.installation().Unanswered()
		return max(0, left)
	case !v.health().Known():
		return max(0, v.health().GraceLeft())
	}
	return 0
}

// composeNumbers sets the status except the conditions.
func (v *View) composeNumbers(status *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
	status.ObservedGeneration = v.ControlPlane.Generation
	selected := v.Labels()
	selected[clusterv1.MachineControlPlaneLabel] = ""
	status.Selector = labels.SelectorFromSet(selected).String()
	status.Replicas = ptr.To(int32(len(v.Found.Machines))) //nolint:gosec // few Machines
	status.ReadyReplicas = v.replicas().Count(clusterv1.MachineReadyCondition)
	status.AvailableReplicas = v.replicas().Count(clusterv1.MachineAvailableCondition)
	status.UpToDateReplicas = v.replicas().Count(clusterv1.MachineUpToDateCondition)
	status.Versions, status.Version = v.versions(), ""
	if len(status.Versions) > 0 {
		status.Version = status.Versions[0].Version
	}
	if v.Workload.OpenShiftVersion != "" {
		status.DistributionVersion = v.Workload.OpenShiftVersion
	}
	if last := v.LastRemediation(v.Found.Machines); last != nil {
		status.LastRemediation = controlplanev1.LastRemediationStatus{Machine: last.Machine, Time: last.Timestamp, RetryCount: &last.RetryCount}
	}
	status.ReleaseImage = v.reportedImage()
	status.KubeconfigExpirationTime = v.kubeconfigExpiration()
	status.Upgrade, status.PoolsBehind = rollout.Status(v.Facts), rollout.PoolsBehind(v.Facts)
	status.PausedPools = rollout.PausedPools(v.Facts)
	phase := v.Phase
	percentage := installed.Percentage(v.Facts)
	if phase == controlplanev1.InstallationInstalled {
		percentage = 100
	}
	status.Installation = controlplanev1.InstallationStatus{
		Phase:          phase,
		Percentage:     &percentage,
		Progress:       progress(phase, percentage),
		StartTime:      v.installation().Start(),
		AttemptTime:    v.attemptStart(),
		WorkerReplicas: ptr.To(v.WorkerReplicas()),
	}
}

// kubeconfigExpiration returns the expiration time of the token in the published kubeconfig. It is nil
// without a token, or if an older release of the provider published the kubeconfig and recorded no time.
func (v *View) kubeconfigExpiration() *metav1.Time {
	if v.Found.Kubeconfig == nil || !ownership.OwnsKubeconfig(v.Facts, v.Found.Kubeconfig) {
		return nil
	}
	at, err := time.Parse(time.RFC3339, v.Found.Kubeconfig.Annotations[facts.KubeconfigExpirationAnnotation])
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// attemptStart returns the start of the present installation attempt; nil if the cluster is installed.
func (v *View) attemptStart() *metav1.Time {
	if start := attempt.Start(v.Facts); v.Phase != controlplanev1.InstallationInstalled && !start.IsZero() {
		return &start
	}
	return nil
}

// progress returns phase and percentage for display; the percentage only in phases in which it changes.
func progress(phase controlplanev1.InstallationPhase, percentage int32) string {
	switch phase {
	case controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling, controlplanev1.InstallationFinalizing:
		return fmt.Sprintf("%s %d%%", phase, percentage)
	default:
		return string(phase)
	}
}

// versions returns the Kubernetes version of the API servers. Cluster API counts a control plane as upgraded once it
// reports the new version. Then it gives MachineDeployments their version: before the kubelets of workers change.
// Before the installation it is the version of the spec. If the spec has a version, MachineSets of Cluster API create no
// workers until the control plane reports one. Day-1 workers must exist before the installation.
func (v *View) versions() []controlplanev1.StatusVersion {
	version := versioning.KubernetesVersion(v.Facts)
	if !v.Installed() {
		version = versioning.WantedKubernetes(v.Facts)
	}
	if version == "" {
		return nil
	}
	return []controlplanev1.StatusVersion{{Version: version, Replicas: ptr.To(int32(len(v.Found.Machines)))}} //nolint:gosec // few Machines
}

// reportedImage returns the release image that is installed, or will be.
func (v *View) reportedImage() string {
	recorded := v.ControlPlane.Status.ReleaseImage
	switch {
	case v.Installed() && v.Workload.ReleaseImage != "":
		return v.Workload.ReleaseImage
	case v.Begun && recorded != "":
		return recorded
	case ownership.OwnsInstall(v.Facts) && v.RegisteredSet != nil:
		return v.RegisteredSet.Spec.ReleaseImage
	}
	return cmp.Or(v.Found.ReleaseImage, recorded)
}
