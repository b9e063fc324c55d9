package controlplane

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// report computes the status from the facts, on every path, and writes it with one request if it changed: a change of words once it has lasted.
func (r *Reconciler) report(ctx context.Context, s *scope, failure error) error {
	if s.released {
		return nil
	}
	cp := s.controlPlane
	if cp.Status.Initialization.ControlPlaneInitialized == nil && s.workload.Connected {
		cp.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	if s.paused() {
		// Nothing was observed beyond the pause.
		conditions.Set(cp, s.pausedCondition())
	} else {
		setStatus(s)
		view := view{scope: s, failure: failure, now: r.now(), started: r.started}
		for _, condition := range view.conditions() {
			conditions.Set(cp, condition)
		}
		conditions.Set(cp, s.pausedCondition())
		if remaining := view.graceLeft(); s.installed() && !view.healthKnown() && remaining > 0 {
			s.again.In(remaining) // the end of a time cannot be watched
		}
		if _, left := view.unanswered(); !s.installed() && left > 0 {
			s.again.In(left)
		}
	}
	if equality.Semantic.DeepEqual(s.before.Status, cp.Status) {
		r.heldBack.Written(cp.UID)
		return nil
	}
	if left := r.quiet(s); left > 0 {
		s.again.In(left)
		return nil
	}
	r.heldBack.Written(cp.UID)
	if err := apply.PatchStatus(ctx, r.Client, s.before, cp); err != nil {
		return err
	}
	r.recent.Wrote(reconcile.Key("", cp), s.before.ResourceVersion)
	r.announce(s)
	return nil
}

// setStatus sets all of the status but the conditions.
func setStatus(s *scope) {
	status := &s.controlPlane.Status
	status.ObservedGeneration = s.controlPlane.Generation
	selected := s.labels()
	selected[clusterv1.MachineControlPlaneLabel] = ""
	status.Selector = labels.SelectorFromSet(selected).String()
	status.Replicas = ptr.To(int32(len(s.machines))) //nolint:gosec // a handful
	status.ReadyReplicas = s.count(clusterv1.MachineReadyCondition)
	status.AvailableReplicas = s.count(clusterv1.MachineAvailableCondition)
	status.UpToDateReplicas = s.count(clusterv1.MachineUpToDateCondition)
	if versions := s.versions(); len(versions) > 0 {
		status.Versions, status.Version = versions, versions[0].Version
	}
	if s.workload.KubernetesVersion != "" {
		status.KubernetesVersion = s.workload.KubernetesVersion
	}
	status.ReleaseImage = s.reportedImage()
	phase := s.phase()
	percentage := s.percentage()
	if phase == controlplanev1.InstallationInstalled {
		percentage = 100
	}
	status.Installation = controlplanev1.InstallationStatus{
		Phase:          phase,
		Percentage:     &percentage,
		Progress:       progress(phase, percentage),
		WorkerReplicas: ptr.To(s.workerReplicas()),
	}
}

// percentage is how much of the installation is done, in full tens: every single percent would be a write for each cluster.
func (s *scope) percentage() int32 { return s.progress.Percentage / 10 * 10 }

// progress is phase and percentage for people; the percentage where it moves.
func progress(phase controlplanev1.InstallationPhase, percentage int32) string {
	switch phase {
	case controlplanev1.InstallationPreparing, controlplanev1.InstallationInstalling, controlplanev1.InstallationFinalizing:
		return fmt.Sprintf("%s %d%%", phase, percentage)
	default:
		return string(phase)
	}
}

// count counts the Machines with a condition.
func (s *scope) count(condition string) *int32 {
	var n int32
	for _, m := range s.machines {
		if conditions.IsTrue(m, condition) {
			n++
		}
	}
	return &n
}

// versions are the releases of the Machines, lowest first. Before the cluster tells its release they are the wanted ones: MachineSets of Cluster
// API hold back workers as long as the control plane reports none, and workers of day 1 must exist before anything is installed.
func (s *scope) versions() []controlplanev1.StatusVersion {
	if installed := s.workload.OpenShiftVersion; installed != "" {
		return []controlplanev1.StatusVersion{{Version: "v" + installed, Replicas: ptr.To(int32(len(s.machines)))}} //nolint:gosec // a handful
	}
	if s.installed() && len(s.before.Status.Versions) > 0 {
		return s.before.Status.Versions // the cluster cannot be asked now
	}
	if len(s.machines) == 0 && !s.deleting() {
		return s.wantedVersion()
	}
	counts := map[string]int32{}
	for _, m := range s.machines {
		if m.Spec.Version != "" {
			counts[m.Spec.Version]++
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
func (s *scope) wantedVersion() []controlplanev1.StatusVersion {
	version, err := release.ParseVersion(s.controlPlane.Spec.Version)
	if err != nil {
		return nil
	}
	return []controlplanev1.StatusVersion{{Version: "v" + version.String(), Replicas: ptr.To[int32](0)}}
}

// parsed reads a version that was accepted before.
func parsed(version string) semver.Version {
	v, _ := release.ParseVersion(version)
	return v
}

// announce makes Events of what changed.
func (r *Reconciler) announce(s *scope) {
	cp := s.controlPlane
	was, is := s.before.Status.Installation.Phase, cp.Status.Installation.Phase
	installed := conditions.Get(cp, controlplanev1.InstalledCondition)
	if installed == nil || s.deleting() { // what assisted-service cancels has not failed
		return
	}
	if was != is {
		switch is {
		case controlplanev1.InstallationInstalling:
			r.event(s, "InstallationStarted", "The installation of %s has started", cp.Spec.Version)
		case controlplanev1.InstallationInstalled:
			r.event(s, "InstallationCompleted", "The cluster is installed")
		case controlplanev1.InstallationFailed:
			r.warn(s, "InstallationFailed", "%s", installed.Message)
		}
	}
	if installed.Reason == controlplanev1.RegisteredAnewReason && conditions.GetReason(s.before, controlplanev1.InstalledCondition) != installed.Reason {
		r.warn(s, controlplanev1.RegisteredAnewReason, "%s", installed.Message)
	}
	if installed.Reason == controlplanev1.PreparationFailedReason && conditions.GetReason(s.before, controlplanev1.InstalledCondition) != installed.Reason {
		r.warn(s, "PreparationFailed", "%s", installed.Message)
	}
}
