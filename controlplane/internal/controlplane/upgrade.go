package controlplane

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/upgrade"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// upgrade asks an installed cluster for the release that the spec asks for. The cluster does the rest by itself, host by host.
func (r *Reconciler) upgrade(ctx context.Context, s *scope) (bool, error) {
	if !upgrade.Due(s.Facts) {
		r.looks.done(s.stored.UID, status.Upgrade)
		return true, nil
	}
	end, may := r.mayLook(s, status.Upgrade)
	if !may {
		return true, nil
	}
	defer end()
	seen, err := r.Versions.Observe(ctx, s.ClusterKey())
	switch {
	case errors.Is(err, workload.ErrNotConnected):
		return true, nil
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read what the upgrade depends upon")
		r.hold(s, removal.Step{Reason: controlplanev1.WaitingForHealthyClusterReason, Message: "what an upgrade depends upon cannot be read from the cluster: it is tried again; see the log of the manager"})
		return true, nil
	}
	request, step := upgrade.Next(s.Facts, &seen)
	if asked, err := r.requestUpdate(ctx, s, request); err != nil || !asked {
		return true, err
	}
	if step == nil {
		r.looks.done(s.stored.UID, status.Upgrade)
	} else {
		r.hold(s, *step)
	}
	return true, nil
}

// requestUpdate writes into the cluster what it is asked for, if anything, and tells whether that was possible.
func (r *Reconciler) requestUpdate(ctx context.Context, s *scope, request facts.UpdateRequest) (bool, error) {
	if request.Channel == "" && len(request.Acknowledge) == 0 && request.Update == nil {
		return true, nil
	}
	switch err := r.Versions.Ask(ctx, s.ClusterKey(), request); {
	case apierrors.IsConflict(err):
		s.again.In(reconcile.CacheLag) // it changed since it was read
		return false, nil
	case kube.Refused(err):
		r.hold(s, removal.Step{Reason: controlplanev1.InvalidConfigurationReason, Message: fmt.Sprintf("the cluster does not take what it is asked for, correct spec.version or spec.upgrade: %v", err)})
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot ask the cluster for another release: %w", err)
	}
	if request.Update != nil {
		r.event(s.stored, "UpgradeRequested", "Asked the cluster, which runs v%s, for v%s", s.Workload.OpenShiftVersion, request.Update.Version)
	}
	return true, nil
}
