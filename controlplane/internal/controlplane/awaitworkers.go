package controlplane

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

// awaitWorkers waits for the workers: they may need the control plane to be drained.
func (r *Reconciler) awaitWorkers(_ context.Context, s *scope) (bool, error) {
	if len(s.Workers) > 0 {
		s.found.Block(status.Deletion, controlplanev1.WaitingForWorkersDeletionReason,
			"waiting for the deletion of worker Machines, or those that do not belong to the control plane: "+status.Names(s.Workers))
		return false, nil
	}
	return true, nil
}

// goesWhole is why nothing is made for a Cluster that is being deleted. Core deletes the workers first, and the control plane when they are gone.
const goesWhole = "the Cluster is being deleted: no installation is begun and no Machine is made; the control plane is deleted after the workers"

// awaitDeletion lets nothing be prepared for a Cluster that is being deleted before it was installed: with fewer workers to wait for assisted-service would begin to install.
func (r *Reconciler) awaitDeletion(_ context.Context, s *scope) (bool, error) {
	if !s.GoesWhole() || s.Begun || s.Installed() {
		return true, nil
	}
	s.block(controlplanev1.WaitingForWorkersDeletionReason, goesWhole)
	return false, nil
}
