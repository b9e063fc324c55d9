package controlplane

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

// awaitWorkers waits for the workers: they may need the control plane to be drained.
func (r *Reconciler) awaitWorkers(_ context.Context, s *scope.Scope) (bool, error) {
	if len(s.Workers) > 0 {
		s.Found.Block(status.Deletion, controlplanev1.WaitingForWorkersDeletionReason,
			"waiting for the deletion of worker Machines, or those that do not belong to the control plane: "+status.Names(s.Workers))
		return false, nil
	}
	return true, nil
}
