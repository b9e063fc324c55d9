package controlplane

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
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

// report computes the status from the facts, on every path, and writes it with one request if it changed: a change of
// words once it has lasted.
func (r *Reconciler) report(ctx context.Context, s *scope.Scope, failure error) error {
	if s.Released {
		return nil
	}
	v := status.View{Facts: s.Facts, Found: s.Found, Failure: failure, Now: r.Clock.Now(), Started: r.started}
	cp := s.Stored.DeepCopy()
	v.Compose(cp)
	if left := v.UntilChange(); left > 0 {
		s.Again.In(left) // the end of a time cannot be watched
	}
	if equality.Semantic.DeepEqual(s.Stored.Status, cp.Status) {
		r.deferred.Reset(cp.UID)
		return nil
	}
	if left := r.quiet(s.Stored, cp); left > 0 {
		s.Again.In(left)
		return nil
	}
	r.deferred.Reset(cp.UID)
	if err := apply.PatchStatus(ctx, r.Client, s.Stored, cp); err != nil {
		return err
	}
	r.writer.Recent.Record(reconcile.Key("", cp), s.Stored.ResourceVersion)
	r.announce(s.Stored, cp)
	measured(s.Stored, cp, r.Clock.Now())
	r.logged(s.Stored, cp)
	if sawItEnd(s.Stored, cp) {
		measure.Reactions(measure.ReactionTo(measure.ClusterInstalled, assisted.InstalledAt(s.Install), r.Clock.Now()))
	}
	if s.Stored.Status.Upgrade.Version != "" && cp.Status.Upgrade.Version == "" {
		r.writer.Event(cp, "UpgradeCompleted", "The cluster runs v%s now", s.Workload.OpenShiftVersion)
	}
	return nil
}

// announce makes Events of what changed.
func (r *Reconciler) announce(before, cp *controlplanev1.OpenshiftAssistedControlPlane) {
	was, is := before.Status.Installation.Phase, cp.Status.Installation.Phase
	installed := conditions.Get(cp, controlplanev1.InstalledCondition)
	if installed == nil || !cp.DeletionTimestamp.IsZero() { // what assisted-service cancels has not failed
		return
	}
	if was != is {
		switch is {
		case controlplanev1.InstallationInstalling:
			r.writer.Event(cp, "InstallationStarted", "The installation of %s has started", cp.Spec.Version)
		case controlplanev1.InstallationInstalled:
			r.writer.Event(cp, "InstallationCompleted", "The cluster is installed")
		case controlplanev1.InstallationFailed:
			r.writer.Warn(cp, "InstallationFailed", "%s", installed.Message)
		}
	}
	if slow := conditions.Get(cp, controlplanev1.HostsProgressingCondition); slow != nil && !conditions.Has(before, controlplanev1.HostsProgressingCondition) {
		r.writer.Warn(cp, controlplanev1.HostsLaggingReason, "%s", slow.Message)
	}
	if installed.Reason == controlplanev1.ReregisteredReason && conditions.GetReason(before, controlplanev1.InstalledCondition) != installed.Reason {
		r.writer.Warn(cp, controlplanev1.ReregisteredReason, "%s", installed.Message)
	}
	if installed.Reason == controlplanev1.WorkersNotCreatedReason && conditions.GetReason(before, controlplanev1.InstalledCondition) != installed.Reason {
		r.writer.Warn(cp, controlplanev1.WorkersNotCreatedReason, "%s", installed.Message)
	}
	if installed.Reason == controlplanev1.PreparationFailedReason && conditions.GetReason(before, controlplanev1.InstalledCondition) != installed.Reason {
		r.writer.Warn(cp, "PreparationFailed", "%s", installed.Message)
	}
}

// quiet returns how much longer the status may wait to be written; 0 is at once.
func (r *Reconciler) quiet(before, after *controlplanev1.OpenshiftAssistedControlPlane) time.Duration {
	if !status.OnlyWords(&before.Status, &after.Status) || conditions.IsTrue(after, clusterv1.PausedCondition) { // who pauses is told at once, and then nothing is written any more
		return r.deferred.UrgentDelay(after.UID)
	}
	return r.deferred.DeferrableDelay(after.UID)
}
