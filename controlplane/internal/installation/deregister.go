package installation

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// Deregister deregisters the cluster. The hosts have to be deleted before: assisted-service unbinds those that exist.
func (r *Registrar) Deregister(ctx context.Context, s *scope.Scope) (bool, error) {
	parts := s.Registration()
	if len(parts) > 0 && parts[0].GetDeletionTimestamp().IsZero() {
		if exists, err := r.exists(ctx, s); err != nil || !exists {
			return false, err
		}
	}
	return r.deleteRegistration(ctx, s, parts, tasks.Deletion, controlplanev1.WaitingForInstallationDeletionReason)
}

// exists reports whether the control plane that is being deleted still exists. The cache may lag behind its deletion, and
// then the objects of its name may belong to a successor. The call has to follow the read of the objects to delete.
func (r *Registrar) exists(ctx context.Context, s *scope.Scope) (bool, error) {
	exists, err := kube.Exists(ctx, r.live, s.Stored, &controlplanev1.OpenshiftAssistedControlPlane{})
	s.Released = err == nil && !exists
	return exists, err
}

// deleteRegistration deletes the objects of a registration, one after the other, and records the blocker of a task. It
// returns true if none is left.
func (r *Registrar) deleteRegistration(
	ctx context.Context, s *scope.Scope, parts []client.Object, task tasks.Task, reason string,
) (bool, error) {
	if len(parts) == 0 {
		return true, nil
	}
	obj := parts[0]
	if err := kube.Delete(ctx, r.client, obj); err != nil {
		return false, err
	}
	kind := "ClusterDeployment"
	if obj != client.Object(s.Deployment) {
		kind = "AgentClusterInstall"
	}
	s.Found.Block(task, reason, fmt.Sprintf("waiting for assisted-service to deregister the cluster (%s %s)", kind, obj.GetName()))
	if requested := obj.GetDeletionTimestamp(); requested != nil {
		if left := assisted.ResponseTimeout - r.clock.Now().Sub(requested.Time); left > 0 {
			s.Again.In(left)
		} else {
			s.Found.Block(task, controlplanev1.AssistedServiceNotRespondingReason,
				assisted.NotResponding("the deletion of "+kind+" "+obj.GetName(), obj.GetNamespace(), requested.Time))
		}
	}
	return false, nil
}
