package controlplane

import (
	"context"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
)

// cleanUpHosts cleans up what hosts leave behind that were released, one after the other, when Machine and Node are gone. Nothing else happens to etcd meanwhile.
func (r *Reconciler) cleanUpHosts(ctx context.Context, s *scope) (bool, error) {
	if s.GoesWhole() || !removal.Concerned(s.Facts) {
		return true, nil
	}
	asked, err := removal.Of(s.Facts)
	if err != nil {
		r.hold(s, removal.Watch(controlplanev1.EtcdUnknownReason, "%s; it is ours: take it off the control plane, and look yourself whether etcd has members whose hosts are gone", err))
		return false, nil // for the user to correct
	}
	for _, left := range asked.Leftovers {
		if fate := asked.FateOf(left, s.Workload.Nodes); fate != removal.Leaving {
			return false, r.cleanUpHost(ctx, s, asked, left, fate)
		}
	}
	return true, nil
}

// cleanUpHost does what is to be done about a host whose Machine is not being deleted, or no more.
func (r *Reconciler) cleanUpHost(ctx context.Context, s *scope, asked *removal.Asked, left removal.Leftover, fate removal.Fate) error {
	if !s.Workload.Connected || !s.Workload.UnreadSince.IsZero() {
		step := s.disconnected()
		if s.Workload.Connected {
			step = removal.Watch(controlplanev1.EtcdUnknownReason, "the Nodes of the cluster cannot be read, see the condition Available")
		}
		step.Message = "what the host of Node " + left.Node + " has left behind cannot be cleaned up: " + step.Message
		r.hold(s, step)
		return nil
	}
	if step := left.Rests(fate); step != nil {
		r.hold(s, *step)
		return nil
	}
	if fate == removal.Staying {
		return r.record(ctx, s, asked.Without(left))
	}
	end, may := r.mayLook(s)
	if !may {
		return nil
	}
	defer end()
	return r.sweep(ctx, s, asked, left)
}

// sweep takes a member out of etcd that was taken in once more, and deletes the certificates of the host, unless another has its name by now, which has its own.
func (r *Reconciler) sweep(ctx context.Context, s *scope, asked *removal.Asked, left removal.Leftover) error {
	seen, ok := r.observeEtcd(ctx, s, removal.Machine{})
	if !ok {
		return nil
	}
	step := asked.DecideLeftover(left, seen)
	switch step.Action {
	case removal.Release:
	case removal.RemoveMember:
		if !r.removeMember(ctx, s, step) {
			return nil
		}
	case removal.Wait, removal.MoveLeader: // which one that is gone cannot be
		r.hold(s, step)
		return nil
	}
	if seen.Node(left.Node) == nil {
		if err := r.Etcds.DeleteSecrets(ctx, s.ClusterKey(), left.Node); err != nil {
			r.failed(ctx, s, step, err)
			return nil
		}
		r.event(s.stored, "EtcdMemberCleanedUp", "Deleted the certificates of etcd on Node %s, which is gone", left.Node)
	}
	r.looks.done(s.stored.UID)
	return r.record(ctx, s, asked.Without(left))
}
