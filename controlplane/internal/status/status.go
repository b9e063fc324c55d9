// Package status computes what an OpenshiftAssistedControlPlane reports: conditions, counts and versions, from the
// facts of a reconcile and what its phases found. It has no client, and no clock.
package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/openshift"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// Compose puts the status together, into a copy of the control plane as it is stored.
func (v *View) Compose(cp *controlplanev1.OpenshiftAssistedControlPlane) {
	if cp.Status.Initialization.ControlPlaneInitialized == nil && v.Workload.Connected {
		cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	if !v.Paused() { // nothing was observed beyond the pause
		v.composeNumbers(&cp.Status)
		for _, condition := range v.conditions() {
			conditions.Set(cp, condition)
		}
		if left := v.Found.Blocked(KubeletApproval); left != nil { // most never have any
			conditions.Set(cp, no(controlplanev1.CertificatesApprovedCondition, left.Reason, left.Message))
		} else {
			conditions.Delete(cp, controlplanev1.CertificatesApprovedCondition)
		}
		v.composePreflight(cp)
		v.composeHostsProgressing(cp)
		v.composeEtcd(cp)
	}
	conditions.Set(cp, v.PausedCondition())
	bound.Conditions(cp.Status.Conditions)
}

// UntilChange is after what time a condition says something else although nothing happens; zero: never.
func (v *View) UntilChange() time.Duration {
	if v.Paused() {
		return 0
	}
	_, slower := v.behind()
	return soonest(v.untilAnswerCounts(), slower, v.comingUp(), v.untilWorkersCount(), v.untilRestartCounts(), v.untilDegradedCounts(), v.untilNodeCounts())
}

// soonest is the shortest of the times that come at all.
func soonest(times ...time.Duration) time.Duration {
	times = slices.DeleteFunc(times, func(left time.Duration) bool { return left <= 0 })
	if len(times) == 0 {
		return 0
	}
	return slices.Min(times)
}

// untilAnswerCounts is after what time it counts that assisted-service or the cluster does not answer; zero: never.
func (v *View) untilAnswerCounts() time.Duration {
	switch {
	case !v.Installed(), v.Imported() && v.healthKnown():
		_, left := v.unanswered()
		return max(0, left)
	case !v.healthKnown():
		return max(0, v.graceLeft())
	}
	return 0
}

// composeNumbers sets all of the status but the conditions.
func (v *View) composeNumbers(status *controlplanev1.OpenshiftAssistedControlPlaneStatus) {
	status.ObservedGeneration = v.ControlPlane.Generation
	selected := v.Labels()
	selected[clusterv1.MachineControlPlaneLabel] = ""
	status.Selector = labels.SelectorFromSet(selected).String()
	status.Replicas = ptr.To(int32(len(v.Found.Machines))) //nolint:gosec // a handful
	status.ReadyReplicas = v.count(clusterv1.MachineReadyCondition)
	status.AvailableReplicas = v.count(clusterv1.MachineAvailableCondition)
	status.UpToDateReplicas = v.count(clusterv1.MachineUpToDateCondition)
	if versions := v.versions(); len(versions) > 0 {
		status.Versions, status.Version = versions, versions[0].Version
	}
	if v.Workload.KubernetesVersion != "" {
		status.KubernetesVersion = v.Workload.KubernetesVersion
	}
	if last := v.LastRemediation(v.Found.Machines); last != nil {
		status.LastRemediation = controlplanev1.LastRemediationStatus{Machine: last.Machine, Time: last.Timestamp, RetryCount: &last.RetryCount}
	}
	status.ReleaseImage = v.reportedImage()
	status.KubeconfigExpirationTime = v.kubeconfigExpiration()
	status.Upgrade, status.PoolsBehind = v.upgradeStatus(), v.poolsBehind()
	phase := v.Phase
	percentage := v.percentage()
	if phase == controlplanev1.InstallationInstalled {
		percentage = 100
	}
	status.Installation = controlplanev1.InstallationStatus{
		Phase:          phase,
		Percentage:     &percentage,
		Progress:       progress(phase, percentage),
		StartTime:      v.installationStart(),
		AttemptTime:    v.attemptStart(),
		WorkerReplicas: ptr.To(v.WorkerReplicas()),
	}
}

// kubeconfigExpiration is when the token in the published kubeconfig ends; nil when it has none, or a release that
// recorded no time published it.
func (v *View) kubeconfigExpiration() *metav1.Time {
	if v.Found.Kubeconfig == nil || !v.OwnsKubeconfig(v.Found.Kubeconfig) {
		return nil
	}
	at, err := time.Parse(time.RFC3339, v.Found.Kubeconfig.Annotations[facts.KubeconfigExpirationAnnotation])
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// percentage is how much of the installation is done, in full tens: every single percent would be a write for each cluster.
func (v *View) percentage() int32 { return v.Progress.Percentage / 10 * 10 }

// installationStart is since when assisted-service prepares and installs the cluster. Its condition keeps that time:
// its words do not change until the installation ends.
func (v *View) installationStart() *metav1.Time {
	c := installCondition(v.Install, hiveext.ClusterRequirementsMetCondition)
	if c == nil || c.Reason != hiveext.ClusterAlreadyInstallingReason || !v.Progress.Started || v.Phase == controlplanev1.InstallationInstalled {
		return nil
	}
	return c.LastTransitionTime.DeepCopy()
}

// attemptStart is when the present attempt at the installation began; nil: the cluster is installed.
func (v *View) attemptStart() *metav1.Time {
	if start := v.AttemptStart(); v.Phase != controlplanev1.InstallationInstalled && !start.IsZero() {
		return &start
	}
	return nil
}

// progress is phase and percentage for people; the percentage where it moves.
func progress(phase controlplanev1.InstallationPhase, percentage int32) string {
	switch phase {
	case controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling, controlplanev1.InstallationFinalizing:
		return fmt.Sprintf("%s %d%%", phase, percentage)
	default:
		return string(phase)
	}
}

// versions are the releases of the Machines, lowest first. Before the cluster tells its release they are the wanted
// ones: MachineSets of Cluster API hold back workers as long as the control plane reports none, and workers of day 1
// must exist before anything is installed.
func (v *View) versions() []controlplanev1.StatusVersion {
	installed := v.Workload.OpenShiftVersion
	switch {
	case installed != "" && v.Workload.Upgrading == "":
		return []controlplanev1.StatusVersion{{Version: "v" + installed, Replicas: ptr.To(int32(len(v.Found.Machines)))}} //nolint:gosec // a handful
	case installed == "" && v.Installed() && len(v.ControlPlane.Status.Versions) > 0:
		return v.ControlPlane.Status.Versions // the cluster cannot be asked now
	case installed == "" && len(v.Found.Machines) == 0 && !v.Deleting():
		return v.wantedVersion()
	}
	counts := map[string]int32{}
	if installed != "" {
		counts["v"+installed] = 0 // an upgrade is done when the cluster says so, not when no Machine has the former version any more
	}
	for _, m := range v.Found.Machines {
		version := m.Spec.Version
		if v.Workload.Upgrading != "" {
			version = v.Found.MachineVersion(v.Facts, m)
		}
		if version != "" {
			counts[version]++
		}
	}
	var versions []controlplanev1.StatusVersion
	for version, n := range counts {
		versions = append(versions, controlplanev1.StatusVersion{Version: version, Replicas: ptr.To(n)})
	}
	slices.SortFunc(versions, func(a, b controlplanev1.StatusVersion) int { return parsed(a.Version).Compare(parsed(b.Version)) })
	return versions
}

// wantedVersion is reported as long as there are no Machines.
func (v *View) wantedVersion() []controlplanev1.StatusVersion {
	version, err := openshift.ParseVersion(v.ControlPlane.Spec.Version)
	if err != nil {
		return nil
	}
	return []controlplanev1.StatusVersion{{Version: "v" + version.String(), Replicas: ptr.To[int32](0)}}
}

// parsed reads a version that was accepted before.
func parsed(version string) semver.Version {
	v, _ := openshift.ParseVersion(version)
	return v
}

// reportedImage is the release image that is installed, or will be.
func (v *View) reportedImage() string {
	recorded := v.ControlPlane.Status.ReleaseImage
	switch {
	case v.Installed() && v.Workload.ReleaseImage != "":
		return v.Workload.ReleaseImage
	case v.Begun && recorded != "":
		return recorded
	case v.OwnsInstall() && v.RegisteredSet != nil:
		return v.RegisteredSet.Spec.ReleaseImage
	}
	return cmp.Or(v.Found.ReleaseImage, recorded)
}
