package controlplane

import (
	"context"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// scaleDown deletes Machines of which there are too many, one after the other. In an installed cluster that is not
// before etcd does without the host: what is deleted cannot be taken back.
func (r *Reconciler) scaleDown(ctx context.Context, s *scope) (bool, error) {
	switch {
	case s.Cluster == nil || s.ClusterDeleting() || len(s.Machines) <= int(s.Replicas()) || slices.ContainsFunc(s.Machines, collections.HasDeletionTimestamp):
		return true, nil
	case !s.Begun:
		return true, r.deleteSurplus(ctx, s, scaling.InOrder(scaling.TooMany(s.Facts))[0])
	case !s.Installed():
		s.found.Block(status.ScaleDown, clusterv1.ScalingDownReason,
			fmt.Sprintf("no control-plane host is removed from a cluster that is being installed: set spec.replicas back to %d", len(s.Machines)))
		return true, nil
	}
	situation, err := removal.Of(s.Facts)
	switch {
	case s.Fenced():
		step := removal.Fenced("no Machine is deleted")
		s.found.Block(status.ScaleDown, step.Reason, step.Message)
		return true, nil
	case s.Reregistered:
		s.found.Block(status.ScaleDown, controlplanev1.ReregisteredReason, status.Reregistered(s.Facts))
		return true, nil
	case !s.Workload.Connected:
		s.found.Block(status.ScaleDown, controlplanev1.ConnectionDownReason, notConnected)
		return true, nil
	case err != nil:
		return true, nil //nolint:nilerr // for the user to correct: told when what is recorded was to be cleaned up
	case len(situation.Leftovers) > 0:
		s.found.Block(status.ScaleDown, controlplanev1.WaitingForMachinesDeletionReason, fmt.Sprintf("what is left of %s, whose host was released before, comes first", situation.Leftovers[0].From()))
		return true, nil
	}
	return true, r.scaleInstalledDown(ctx, s, situation)
}

// scaleInstalledDown deletes a Machine, or says why none is deleted.
func (r *Reconciler) scaleInstalledDown(ctx context.Context, s *scope, situation *removal.Situation) error {
	end, may := r.mayInspect(s, status.ScaleDown)
	if !may {
		return nil
	}
	defer end()
	etcd, ok := r.observeEtcd(ctx, s, removal.Machine{})
	if !ok {
		return nil
	}
	name, against := scaling.Down(s.Facts, situation, etcd)
	switch {
	case name == "":
		r.block(s, decision.Join(against))
		return nil
	case len(against) > 0:
		r.block(s, decision.Join(against).About("Machine %s is not deleted", name))
		return nil
	}
	m := s.Machines[slices.IndexFunc(s.Machines, func(m *clusterv1.Machine) bool { return m.Name == name })]
	if !removal.Holds(m) {
		r.block(s, decision.Watch(controlplanev1.WaitingForEtcdReason, "Machine %s is not deleted: it does not carry our hook yet, see the condition MachinesUpToDate", name))
		return nil
	}
	r.inspections.done(s.stored.UID, status.ScaleDown)
	return r.deleteSurplus(ctx, s, m)
}

// deleteSurplus deletes a Machine, unless the cache is behind: another may have been deleted already, and this one is not too many then.
func (r *Reconciler) deleteSurplus(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	live, err := r.liveMachines(ctx, s.Facts)
	if err != nil {
		return err
	}
	stay := slices.DeleteFunc(live, func(known clusterv1.Machine) bool { return !s.Controls(&known) || !known.DeletionTimestamp.IsZero() })
	if len(stay) < len(s.Machines) {
		s.again.In(reconcile.CacheLag)
		return nil
	}
	if err := kube.Delete(ctx, r.Client, m); err != nil {
		return err
	}
	r.event(s.stored, "MachineDeleted", "Deleted Machine %s: there were %s, and spec.replicas is %d", m.Name, english.Plural(len(s.Machines), "Machine", ""), s.Replicas())
	return nil
}
