package controlplane

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// deregister deregisters the cluster, which must come after its hosts: assisted-service unbinds those that are left.
func (r *Reconciler) deregister(ctx context.Context, s *scope.Scope) (bool, error) {
	parts := s.Registration()
	if len(parts) > 0 && parts[0].GetDeletionTimestamp().IsZero() {
		if there, err := r.isThere(ctx, s); err != nil || !there {
			return false, err
		}
	}
	return r.deleteRegistration(ctx, s, parts, status.Deletion, controlplanev1.WaitingForInstallationDeletionReason)
}

// isThere reports whether the control plane that is being deleted is still there. Where it is not, and the cache is
// behind, what bears its name may be that of another one by now, which was made in its place. It is asked after what is
// to be deleted was read.
func (r *Reconciler) isThere(ctx context.Context, s *scope.Scope) (bool, error) {
	there, err := kube.Exists(ctx, r.Live, s.Stored, &controlplanev1.OpenshiftAssistedControlPlane{})
	s.Released = err == nil && !there
	return there, err
}

// deleteRegistration deletes what stands for a cluster in assisted-service, one after the other, and returns what a task waits for.
func (r *Reconciler) deleteRegistration(ctx context.Context, s *scope.Scope, parts []client.Object, task status.Task, reason string) (bool, error) {
	if len(parts) == 0 {
		return true, nil
	}
	obj := parts[0]
	if err := kube.Delete(ctx, r.Client, obj); err != nil {
		return false, err
	}
	kind := "ClusterDeployment"
	if obj != client.Object(s.Deployment) {
		kind = "AgentClusterInstall"
	}
	s.Found.Block(task, reason, fmt.Sprintf("waiting for assisted-service to deregister the cluster (%s %s)", kind, obj.GetName()))
	if asked := obj.GetDeletionTimestamp(); asked != nil {
		if left := assisted.ResponseTimeout - r.Clock.Now().Sub(asked.Time); left > 0 {
			s.Again.In(left)
		} else {
			s.Found.Block(task, controlplanev1.AssistedServiceNotRespondingReason, assisted.NotResponding("the deletion of "+kind+" "+obj.GetName(), obj.GetNamespace(), asked.Time))
		}
	}
	return false, nil
}
