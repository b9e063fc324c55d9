package controlplane

import (
	"context"
	"slices"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
)

// cleanUpHosts cleans up what hosts leave behind that were released, one after the other, when Machine and Node are gone. Nothing else happens to etcd meanwhile.
func (r *Reconciler) cleanUpHosts(ctx context.Context, s *scope) (bool, error) {
	if s.GoesWhole() {
		return true, nil
	}
	asked, err := removal.Of(s.Facts)
	if err != nil {
		s.hold(removal.Step{Reason: controlplanev1.EtcdUnknownReason, Message: err.Error() + "; it is ours: take it off the control plane, and look yourself whether etcd has members whose hosts are gone"})
		return false, nil //nolint:nilerr // for the user to correct
	}
	if len(asked.Leftovers) == 0 || !s.Workload.Connected || !s.Workload.UnreadSince.IsZero() {
		return true, nil
	}
	left := asked.Leftovers[0]
	node := s.nodeNamed(left.Node)
	switch {
	case node != nil && node.UID != left.UID: // of another host by now
		return false, r.record(ctx, s, asked.Leftovers[1:])
	case slices.ContainsFunc(asked.Machines, func(m removal.Machine) bool { return m.Node == left.Node }):
		return true, nil // the host is on its way out
	case node != nil:
		s.hold(removal.Step{Reason: controlplanev1.WaitingForMachinesDeletionReason, Message: removal.NodeRemains(left.Node)})
		return false, nil
	}
	return false, r.cleanUpHost(ctx, s, asked, left)
}

// nodeNamed finds a Node; nil when there is none.
func (s *scope) nodeNamed(name string) *facts.Node {
	for i := range s.Workload.Nodes {
		if s.Workload.Nodes[i].Name == name {
			return &s.Workload.Nodes[i]
		}
	}
	return nil
}

// cleanUpHost takes a member out of etcd that was taken in once more, and deletes the certificates of the host.
func (r *Reconciler) cleanUpHost(ctx context.Context, s *scope, asked *removal.Asked, left removal.Leftover) error {
	etcd, seen := r.observeEtcd(ctx, s, removal.Machine{})
	if !seen {
		return nil
	}
	step := asked.DecideLeftover(left, etcd)
	switch step.Action {
	case removal.Release:
	case removal.RemoveMember:
		if !r.removeMember(ctx, s, step) {
			return nil
		}
	case removal.Wait, removal.MoveLeader: // which one that is gone cannot be
		s.hold(step)
		return nil
	}
	if err := r.Etcds.DeleteSecrets(ctx, s.ClusterKey(), left.Node); err != nil {
		r.failed(ctx, s, step, err)
		return nil
	}
	r.event(s.stored, "EtcdMemberCleanedUp", "Deleted the certificates of etcd on Node %s, which is gone", left.Node)
	return r.record(ctx, s, asked.Leftovers[1:])
}
