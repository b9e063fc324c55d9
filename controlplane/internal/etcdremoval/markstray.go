package etcdremoval

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
)

// ReportStray reports why a Machine is not deleted that was removed from the control plane and still has our
// hook. Its host may be a member of etcd, but the decision whether etcd can spare a host no longer counts
// this Machine.
func (r *Remover) ReportStray(_ context.Context, s *scope.Scope) (bool, error) {
	if s.ClusterDeleting() || s.Found.Blocked(tasks.HostRelease) != nil {
		return true, nil
	}
	for _, m := range s.Workers {
		if !m.DeletionTimestamp.IsZero() && removal.HasHook(m) {
			s.Found.Block(tasks.HostRelease, controlplanev1.ControlPlaneLabelsMissingReason, fmt.Sprintf("the host of Machine %s is not touched: "+
				"the Machine has no labels of the control plane, so that it is unknown whether etcd needs the host. Restore the labels %s and %s of "+
				"the Machine. If its host is no member of etcd, remove the annotation %s instead",
				m.Name, clusterv1.MachineControlPlaneLabel, clusterv1.MachineControlPlaneNameLabel, controlplanev1.EtcdMemberHookAnnotation))
			return true, nil
		}
	}
	return true, nil
}
