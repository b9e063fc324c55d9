package controlplane

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// upgrade asks an installed cluster for the release that the spec asks for. The cluster does the rest by itself, host by host.
func (r *Reconciler) upgrade(ctx context.Context, s *scope) (bool, error) {
	if !upgrade.Due(s.Facts) {
		r.inspections.done(s.stored.UID, status.Upgrade)
		return true, nil
	}
	end, may := r.mayInspect(s, status.Upgrade)
	if !may {
		return true, nil
	}
	defer end()
	seen, err := r.Versions.Observe(ctx, s.ClusterKey())
	switch {
	case errors.Is(err, cluster.ErrNotConnected):
		return true, nil
	case err != nil:
		r.blockUpgrade(ctx, s, err)
		return true, nil
	}
	request, blocker := upgrade.Next(s.Facts, &seen)
	if asked := r.requestUpdate(ctx, s, request); !asked {
		return true, nil
	}
	if blocker != nil {
		r.block(s, *blocker)
	}
	return true, nil
}

// blockUpgrade tells that the ClusterVersion, or what belongs to it, can be neither read nor written.
func (r *Reconciler) blockUpgrade(ctx context.Context, s *scope, err error) {
	ctrl.LoggerFrom(ctx).Error(err, "Cannot read or write what the upgrade of the cluster depends upon")
	if left := passingTime - r.now().Sub(r.failing.Since(upgradeKey(s))); left > 0 && kube.IsTransient(err) {
		r.block(s, decision.Wait(controlplanev1.UpgradeInProgressReason, "The upgrade is not requested yet: the API server of the cluster is busy or restarts. The request is tried again"))
		return
	}
	r.block(s, decision.Wait(controlplanev1.ClusterVersionUnavailableReason, "what an upgrade depends upon cannot be read from the cluster, or it cannot be asked for another release: "+
		"it is tried again. Check that the credentials in its kubeconfig have the rights for it; see the log of the manager"))
}

func upgradeKey(s *scope) string { return reconcile.Key("upgrade", s.stored) }

// requestUpdate writes into the cluster what it is asked for, if anything, and reports whether that was possible. What
// was written is not written again at once: others may write something else there.
func (r *Reconciler) requestUpdate(ctx context.Context, s *scope, request facts.UpdateRequest) bool {
	if request.Empty() {
		r.failing.Clear(upgradeKey(s))
		return true
	}
	id := fmt.Sprintf("%s %s %v %+v %t", s.stored.UID, request.Channel, request.Acknowledge, ptr.Deref(request.Update, facts.Update{}), request.Withdraw)
	if r.requestBackoff.IsInBackOffSinceUpdate(id, r.now()) {
		r.block(s, decision.Wait(controlplanev1.UpgradeInProgressReason, "the cluster was asked for the same a moment ago, and somebody changed it there: it is asked again later"))
		return false
	}
	switch err := r.Versions.RequestUpdate(ctx, s.ClusterKey(), request); {
	case apierrors.IsConflict(err):
		s.again.In(reconcile.CacheLag) // it changed since it was read
		return false
	case kube.IsRefused(err):
		r.block(s, decision.Wait(controlplanev1.InvalidConfigurationReason, "the cluster does not take what it is asked for, correct spec.version or spec.upgrade: %v", err))
		return false
	case err != nil:
		r.blockUpgrade(ctx, s, err)
		return false
	}
	r.failing.Clear(upgradeKey(s))
	r.requestBackoff.Next(id, r.now())
	r.requestBackoff.GC()
	switch {
	case request.Update != nil:
		r.event(s.stored, "UpgradeRequested", "Asked the cluster, which runs v%s, for v%s%s", s.Workload.OpenShiftVersion, request.Update.Version, inSpiteOf(request.Tolerated))
	case request.Withdraw:
		r.event(s.stored, "UpgradeWithdrawn", "Took back what the cluster, which runs v%s, was asked for and had not begun", s.Workload.OpenShiftVersion)
	}
	return true
}

// inSpiteOf names what was tolerated for a request.
func inSpiteOf(tolerated []string) string {
	if len(tolerated) == 0 {
		return ""
	}
	return ". Tolerated: " + bound.Join(tolerated, "")
}
