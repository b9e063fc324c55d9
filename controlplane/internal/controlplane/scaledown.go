package controlplane

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// scaleDown deletes one Machine too many, while nothing is installed. Afterwards the user deletes the Machine, whose host is held until it has left etcd.
func (r *Reconciler) scaleDown(ctx context.Context, s *scope) error {
	if s.Begun {
		s.found.Block(status.ScaleDown, clusterv1.ScalingDownReason,
			fmt.Sprintf("no control-plane host is removed from a cluster that is installed, or being installed: set spec.replicas back to %d", len(s.Machines)))
		return nil
	}
	for _, m := range s.Machines {
		if !m.DeletionTimestamp.IsZero() {
			return nil // one after the other
		}
	}
	return kube.Delete(ctx, r.Client, pickSurplus(s.Machines))
}

// pickSurplus picks the Machine that the user marked with the annotation cluster.x-k8s.io/delete-machine, else the newest.
func pickSurplus(machines []*clusterv1.Machine) *clusterv1.Machine {
	var picked *clusterv1.Machine
	for _, m := range machines {
		if _, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]; marked {
			return m
		}
		if picked == nil || picked.CreationTimestamp.Before(&m.CreationTimestamp) {
			picked = m
		}
	}
	return picked
}
