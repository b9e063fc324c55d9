package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// leftoverRetry is how often leftovers of a former Machine of the same name are looked at; their kinds are not all watched.
const leftoverRetry = reconcile.CacheLag * 10

// releaseWorkers waits for the workers: they may need the control plane to be drained.
func (r *Reconciler) releaseWorkers(_ context.Context, s *scope) (bool, error) {
	if len(s.Workers) > 0 {
		s.found.Block(status.Deletion, controlplanev1.WaitingForWorkersDeletionReason,
			"waiting for the deletion of worker Machines, or those that do not belong to the control plane: "+status.Names(s.Workers))
		return false, nil
	}
	return true, nil
}

// releaseMachines deletes the control-plane Machines, all at once: the cluster goes as a whole.
func (r *Reconciler) releaseMachines(ctx context.Context, s *scope) (bool, error) {
	for _, m := range s.Machines {
		if err := kube.Delete(ctx, r.Client, m); err != nil {
			return false, err
		}
	}
	if len(s.Machines) > 0 {
		s.found.Block(status.Deletion, controlplanev1.WaitingForMachinesDeletionReason, "waiting for the deletion of control-plane Machines "+status.Names(s.Machines))
		return false, nil
	}
	return true, nil
}

// releaseInstallation deregisters the cluster, which must come after its hosts: assisted-service unbinds those that are left.
func (r *Reconciler) releaseInstallation(ctx context.Context, s *scope) (bool, error) {
	parts := s.registration()
	if len(parts) == 0 {
		return true, nil
	}
	obj := parts[0] // one after the other
	if err := kube.Delete(ctx, r.Client, obj); err != nil {
		return false, err
	}
	kind := "ClusterDeployment"
	if obj != client.Object(s.Deployment) {
		kind = "AgentClusterInstall"
	}
	s.found.Block(status.Deletion, controlplanev1.WaitingForInstallationDeletionReason, fmt.Sprintf("waiting for assisted-service to deregister the cluster (%s %s)", kind, obj.GetName()))
	if asked := obj.GetDeletionTimestamp(); asked != nil {
		if left := assisted.AnswerTime - r.now().Sub(asked.Time); left > 0 {
			s.again.In(left)
		} else {
			s.found.Block(status.Deletion, controlplanev1.AssistedServiceNotRespondingReason, assisted.NotResponding("the deletion of "+kind+" "+obj.GetName(), obj.GetNamespace(), asked.Time))
		}
	}
	return false, nil
}

// releaseImageSets deletes our ClusterImageSets, also when the configuration names another by now.
func (r *Reconciler) releaseImageSets(ctx context.Context, s *scope) (bool, error) {
	return true, r.deleteImageSets(ctx, s, "")
}

// deleteImageSets deletes our ClusterImageSets but one.
func (r *Reconciler) deleteImageSets(ctx context.Context, s *scope, keep string) error {
	for i := range s.OwnSets {
		if set := &s.OwnSets[i]; set.Name != keep {
			if err := kube.Delete(ctx, r.Client, set); err != nil {
				return err
			}
		}
	}
	return nil
}
