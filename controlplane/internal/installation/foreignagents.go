package installation

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/installed"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

// BlockForForeignAgents blocks the installation while Agents of other namespaces are bound to the cluster.
// assisted-service would install their hosts as soon as the last host is approved. The bootstrap provider approves hosts
// while the registration is blocked. Therefore this phase holds the installation if the registration did not.
func (r *Registrar) BlockForForeignAgents(ctx context.Context, s *scope.Scope) (bool, error) {
	owns := ownership.OwnsInstall(s.Facts) && s.Install.DeletionTimestamp.IsZero()
	if s.Begun || s.Installed() || s.ClusterDeleting() || len(s.ForeignAgents) == 0 || !owns && !s.Found.Registered {
		return true, nil
	}
	if !s.Found.Registered && !s.Install.Spec.HoldInstallation {
		if held, err := r.holdInstallation(ctx, s, installed.ForeignAgents(s.Facts)); err != nil || !held {
			return false, err
		}
	}
	s.Block(controlplanev1.ForeignAgentsBoundReason, "The installation is blocked: "+installed.ForeignAgents(s.Facts))
	return true, nil
}

// BlockForKubernetes holds the installation of a registered cluster whose spec got another Kubernetes version than its
// release has: see releaseimage.Resolver.CheckKubernetes. The registration withdraws the hold.
func (r *Registrar) BlockForKubernetes(ctx context.Context, s *scope.Scope) (bool, error) {
	blocked := s.Found.Blocked(tasks.Installation)
	mismatch := blocked != nil && blocked.Reason == controlplanev1.KubernetesVersionMismatchReason
	owns := ownership.OwnsInstall(s.Facts) && s.Install.DeletionTimestamp.IsZero()
	if s.Begun || !owns || !mismatch || s.Install.Spec.HoldInstallation {
		return true, nil
	}
	_, err := r.holdInstallation(ctx, s, blocked.Message)
	return true, err
}
