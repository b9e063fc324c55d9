package controlplane

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// report writes the status, and then emits the queued Events. Each reconcile calls report, also after errors.
func (r *Reconciler) report(ctx context.Context, s *scope.Scope, failure error) error {
	var err error
	if !s.Released {
		err = r.writeStatus(ctx, s, failure)
	}
	reconcile.EmitEvents(r.Recorder, s.Stored, s.Found.Events(), err == nil)
	return err
}

// writeStatus computes the status from the facts, and writes it with one request if it changed. A change of words alone
// is written later.
func (r *Reconciler) writeStatus(ctx context.Context, s *scope.Scope, failure error) error {
	v := status.View{
		Facts: s.Facts, Found: s.Found, Removal: s.Removal, Failure: failure, Now: r.Clock.Now(), Started: r.started,
	}
	cp := s.Stored.DeepCopy()
	v.Compose(cp)
	if left := v.UntilChange(); left > 0 {
		s.Again.In(left) // no watch reports that time has passed
	}
	if equality.Semantic.DeepEqual(s.Stored.Status, cp.Status) {
		r.deferred.Reset(cp.UID)
		return nil
	}
	if left := r.reportDelay(s.Stored, cp); left > 0 {
		s.Again.In(left)
		return nil
	}
	r.deferred.Reset(cp.UID)
	if err := apply.PatchStatus(ctx, r.Client, s.Stored, cp); err != nil {
		return err
	}
	r.writer.Recent.Record(reconcile.Key("", cp), s.Stored.ResourceVersion)
	queueEvents(s, s.Stored, cp)
	measured(s.Stored, cp, r.Clock.Now())
	r.logged(s.Stored, cp)
	if installationEnded(s.Stored, cp) {
		measure.Reactions(measure.ReactionTo(measure.ClusterInstalled, assisted.InstalledAt(s.Install), r.Clock.Now()))
	}
	if s.Stored.Status.Upgrade.DistributionVersion != "" && cp.Status.Upgrade.DistributionVersion == "" {
		s.Found.StatusEvent(corev1.EventTypeNormal, "UpgradeCompleted", "The cluster runs v%s now", s.Workload.OpenShiftVersion)
	}
	return nil
}

// queueEvents queues the Events about the changes of a written status.
func queueEvents(s *scope.Scope, before, cp *controlplanev1.OpenshiftAssistedControlPlane) {
	deleting := !cp.DeletionTimestamp.IsZero()
	if was, is := before.Status.Installation.Phase, cp.Status.Installation.Phase; was != is && !deleting {
		switch is {
		case controlplanev1.InstallationInstalling:
			s.Found.StatusEvent(corev1.EventTypeNormal, "InstallationStarted", "The installation of %s has started", cp.Spec.DistributionVersion)
		case controlplanev1.InstallationInstalled:
			s.Found.StatusEvent(corev1.EventTypeNormal, "InstallationCompleted", "The cluster is installed")
		}
	}
	s.Found.ProblemEvents("", reportedProblems(before, deleting), reportedProblems(cp, deleting))
}

// reportedProblems returns the problems that a status reports. A new control plane does not report them yet.
func reportedProblems(cp *controlplanev1.OpenshiftAssistedControlPlane, deleting bool) []metav1.Condition {
	if cp.Status.ProblemReason == "" {
		return nil
	}
	return status.Problems(cp.Status.Conditions, deleting)
}

// reportDelay returns how much longer the write of the status may wait.
func (r *Reconciler) reportDelay(before, after *controlplanev1.OpenshiftAssistedControlPlane) time.Duration {
	// The condition Paused is urgent: a paused object gets no further status.
	if !status.OnlyWords(&before.Status, &after.Status) || conditions.IsTrue(after, clusterv1.PausedCondition) {
		return r.deferred.UrgentDelay(after.UID)
	}
	return r.deferred.DeferrableDelay(after.UID)
}
