package controlplane

import (
	"context"
	"fmt"

	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// confirmDeleted returns true once the API server has no object of the control plane. The caches may lack an object
// that was created a moment ago, and no controller would delete such an object later.
func (r *Reconciler) confirmDeleted(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.ClusterName() == "" {
		return true, nil // nothing was created
	}
	if err := r.readLeft(ctx, s); err != nil {
		return false, err
	}
	if len(s.Machines)+len(s.Registration())+len(s.OwnSets) == 0 {
		return true, nil
	}
	s.Again.In(reconcile.CacheLag) // no watch reports the deletion of an object that the caches do not show
	s.Found.Block(tasks.Deletion, controlplanev1.WaitingForInstallationDeletionReason,
		"waiting for the deletion of the objects that were created last")
	return false, reconcile.Run(ctx, s, r.deleter.DeleteAll, r.registrar.Deregister, r.registrar.DeleteImageSets)
}

// readLeft reads the objects of the control plane that the garbage collector does not delete from the API server.
func (r *Reconciler) readLeft(ctx context.Context, s *scope.Scope) error {
	if err := gatherRegistration(ctx, r.Live, s.Facts); err != nil {
		return err
	}
	machines, err := s.LiveMachines(ctx, r.Live)
	if err != nil {
		return err
	}
	s.Machines = nil
	for i := range machines {
		if m := &machines[i]; s.Controls(m) {
			s.Machines = append(s.Machines, m)
		}
	}
	sets := &hivev1.ClusterImageSetList{}
	if err := r.Live.List(ctx, sets, client.MatchingLabels(s.Labels())); err != nil {
		return fmt.Errorf("cannot list ClusterImageSets: %w", err)
	}
	s.OwnSets = nil
	for _, set := range sets.Items {
		if set.Annotations[facts.OwnerAnnotation] == client.ObjectKeyFromObject(s.Stored).String() {
			s.OwnSets = append(s.OwnSets, set)
		}
	}
	return nil
}
