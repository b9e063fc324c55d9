package controlplane

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// awaitDeletion lets nothing be prepared for a Cluster that is being deleted before it was installed: with fewer
// workers to wait for assisted-service would begin to install.
func (r *Reconciler) awaitDeletion(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.ClusterDeleting() || s.Begun || s.Installed() {
		return true, nil
	}
	s.Block(controlplanev1.WaitingForWorkersDeletionReason, scope.ClusterDeleting)
	_, err := r.blockInstallation(ctx, s)
	return false, err
}

// blockInstallation keeps assisted-service from beginning to install a cluster that is being deleted: it does so by
// itself as soon as all hosts are approved, which the last of them may have been when the Cluster was deleted. What it
// began before that is ended by the deletion.
func (r *Reconciler) blockInstallation(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Begun || !s.OwnsInstall() || !s.Install.DeletionTimestamp.IsZero() || s.Install.Spec.HoldInstallation {
		return true, nil
	}
	if goes, err := r.isBeingDeleted(ctx, s); err != nil || !goes {
		return false, err
	}
	_, err := r.holdInstallation(ctx, s, "The cluster is being deleted, and the deletion ends an installation that has begun")
	return err == nil, err
}

// isBeingDeleted reports whether what is being deleted by the cache is that still, and not gone by now: the
// AgentClusterInstall may be that of a successor of its name, which nobody would take the hold off. It is asked after
// the AgentClusterInstall was read.
func (r *Reconciler) isBeingDeleted(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Deleting() {
		return r.isThere(ctx, s)
	}
	there, err := kube.Exists(ctx, r.Live, s.Cluster, &clusterv1.Cluster{})
	if err == nil && !there {
		s.Again.In(reconcile.CacheLag)
	}
	return there, err
}
