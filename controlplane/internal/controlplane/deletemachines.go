package controlplane

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// deleteMachines deletes the control-plane Machines, all at once: the cluster goes as a whole.
func (r *Reconciler) deleteMachines(ctx context.Context, s *scope.Scope) (bool, error) {
	for _, m := range s.Machines {
		if err := kube.Delete(ctx, r.Client, m); err != nil {
			return false, err
		}
	}
	if len(s.Machines) > 0 {
		s.Found.Block(status.Deletion, controlplanev1.WaitingForMachinesDeletionReason, "waiting for the deletion of control-plane Machines "+status.Names(s.Machines))
		return false, nil
	}
	return true, nil
}
