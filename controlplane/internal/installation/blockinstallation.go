package installation

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// AwaitDeletion blocks the registration of a Cluster that is being deleted before its installation. The deletion of
// workers lowers the number of hosts for which assisted-service waits, so that it could begin to install.
func (r *Registrar) AwaitDeletion(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.ClusterDeleting() || s.Begun || s.Installed() {
		return true, nil
	}
	s.Block(controlplanev1.WaitingForWorkersDeletionReason, scope.ClusterDeleting)
	_, err := r.BlockInstallation(ctx, s)
	return false, err
}

// BlockInstallation holds the installation of a cluster that is being deleted. Otherwise assisted-service would begin
// as soon as all hosts are approved. The last host may have been approved when the Cluster was deleted. The
// deletion of the registration cancels an installation that has begun.
func (r *Registrar) BlockInstallation(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Begun || !ownership.OwnsInstall(s.Facts) || !s.Install.DeletionTimestamp.IsZero() || s.Install.Spec.HoldInstallation {
		return true, nil
	}
	if deleting, err := r.isBeingDeleted(ctx, s); err != nil || !deleting {
		return false, err
	}
	_, err := r.holdInstallation(ctx, s, "The cluster is being deleted, and the deletion ends an installation that has begun")
	return err == nil, err
}

// isBeingDeleted reports whether the object whose deletion the cache shows still exists. If it does not, the
// AgentClusterInstall may belong to a successor of the same name, and no controller would withdraw the hold. The call
// has to follow the read of the AgentClusterInstall.
func (r *Registrar) isBeingDeleted(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Deleting() {
		return r.exists(ctx, s)
	}
	exists, err := kube.Exists(ctx, r.live, s.Cluster, &clusterv1.Cluster{})
	if err == nil && !exists {
		s.Again.In(reconcile.CacheLag)
	}
	return exists, err
}
