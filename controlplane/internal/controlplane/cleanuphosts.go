package controlplane

import (
	"cmp"
	"context"
	"math"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
)

// cleanUpHosts cleans up what hosts leave behind that were released, one after the other, when Machine and Node are
// gone. Nothing else happens to etcd meanwhile.
func (r *Reconciler) cleanUpHosts(ctx context.Context, s *scope) (bool, error) {
	if s.ClusterDeleting() || !removal.Concerned(s.Facts) {
		return true, nil
	}
	situation, err := removal.Of(s.Facts)
	if err != nil {
		r.block(s, decision.Watch(controlplanev1.EtcdUnknownReason, "%s; it is ours: take it off the control plane, and look yourself whether etcd has members whose hosts are gone", err))
		return false, nil // for the user to correct
	}
	for _, left := range situation.Leftovers {
		if state := situation.StateOf(left); state != removal.Leaving && state != removal.Unproven {
			return false, r.cleanUpHost(ctx, s, situation, left, state)
		}
		if m, found := situation.Going(left); found {
			if err := r.guardHost(ctx, s, situation, left, m); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// maxLeavingChecks is how often it is looked whether a host that was released was taken in again, while nothing is
// found: within half an hour it is off, or will not be.
const maxLeavingChecks = 30

// guardHost looks after a host that was released and may still run: OpenShift takes in hosts that run, and it would be
// wiped while it votes.
func (r *Reconciler) guardHost(ctx context.Context, s *scope, situation *removal.Situation, left removal.Leftover, m removal.Machine) (err error) {
	most := maxLeavingChecks
	if at := slices.IndexFunc(s.Machines, func(known *clusterv1.Machine) bool { return known.UID == m.UID }); at >= 0 && conditions.IsTrue(s.Machines[at], clusterv1.MachineNodeReadyCondition) {
		most = math.MaxInt // a host that runs is taken in again, however long its infrastructure is not deleted
	}
	r.checkInBackground(s, "leaving "+string(m.UID), initialBackgroundDelay, most, func() (found *decision.Blocker, changed bool) {
		seen, failure := r.readEtcd(ctx, s)
		if failure != nil {
			ctrl.LoggerFrom(ctx).V(1).Info("Cannot see whether a released host is a member of etcd again", "Machine", m.Name, "reason", failure.Error())
			return nil, false // that of a cluster is noticed elsewhere which does not answer
		}
		step := situation.DecideLeaving(m, left, &seen)
		s.inspection = etcdInspection{} // which may be changed now
		switch step.Action {
		case removal.Release:
			return nil, false
		case removal.Wait:
		case removal.MoveLeader:
			failure = r.Etcds.MoveLeader(ctx, s.ClusterKey(), step.Member, step.To)
		case removal.RemoveMember:
			if err = r.recordLeftover(ctx, s, situation, step.Leaves); err != nil {
				return nil, false
			}
			failure = r.Etcds.RemoveMember(ctx, s.ClusterKey(), step.Via, step.Member)
		}
		return r.guarded(ctx, s, step, failure)
	})
	return err
}

// guarded is what is to be told of a released host that is to leave etcd once more.
func (r *Reconciler) guarded(ctx context.Context, s *scope, step removal.Step, failure error) (found *decision.Blocker, changed bool) {
	blocker := step.Blocker
	switch {
	case failure != nil:
		ctrl.LoggerFrom(ctx).V(1).Info("Cannot take a released host out of etcd", "Machine", step.Machine.Name, "step", step.Action, "reason", failure.Error())
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "%s; it is tried again", etcd.Describe(failure))
	case step.Action == removal.RemoveMember:
		r.event(s.stored, "EtcdMemberRemoved", "Removed member %s from etcd, in which it was again: its Machine %s", cmp.Or(step.Member.Name, "without name"), deletionProgress(step.Machine))
		return nil, true
	case step.Action == removal.MoveLeader:
		return nil, true
	}
	blocker.Watched = false
	blocker = blocker.About("Machine %s is being removed, and its host may be in etcd again", step.Machine.Name)
	return &blocker, false
}

// cleanUpHost does what is to be done about a host whose Machine is not being deleted, or no more.
func (r *Reconciler) cleanUpHost(ctx context.Context, s *scope, situation *removal.Situation, left removal.Leftover, state removal.HostState) error {
	if !s.Workload.Connected || !s.Workload.UnreadSince.IsZero() {
		blocker := s.disconnected()
		if s.Workload.Connected {
			blocker = decision.Watch(controlplanev1.EtcdUnknownReason, "the Nodes of the cluster cannot be read, see the condition Available")
		}
		r.block(s, blocker.About("what the host of %s has left behind cannot be cleaned up", left.From()))
		return nil
	}
	if rests := left.Rests(state); rests != nil {
		r.block(s, *rests)
		return nil
	}
	if state == removal.Staying {
		return r.record(ctx, s, situation.Without(left))
	}
	end, may := r.mayInspect(s, status.HostRelease)
	if !may {
		return nil
	}
	defer end()
	if state == removal.Remaining {
		r.deleteNode(ctx, s, situation, left)
		return nil
	}
	return r.sweep(ctx, s, situation, left)
}

// deleteNode deletes the Node of a released host that Cluster API has left behind. The watch of Nodes triggers the next
// reconcile, which cleans up the rest.
func (r *Reconciler) deleteNode(ctx context.Context, s *scope, situation *removal.Situation, left removal.Leftover) {
	seen, ok := r.observeEtcd(ctx, s, removal.Machine{})
	if !ok {
		return
	}
	node, against := situation.DecideNode(left, seen)
	if against != nil {
		r.block(s, *against)
		return
	}
	s.inspection = etcdInspection{}
	switch err := r.Etcds.DeleteNode(ctx, s.ClusterKey(), *node); {
	case apierrors.IsConflict(err):
		r.block(s, removal.NodeChanged(left))
		return
	case err != nil:
		r.failed(ctx, s, removal.Step{}, err)
		return
	}
	r.event(s.stored, "NodeDeleted", "Deleted Node %s, which Cluster API left behind: its host left etcd, its Machine was deleted, and its kubelet does not report", node.Name)
	r.inspections.done(s.stored.UID, inspectionTasks...)
}

// sweep takes a member out of etcd that was taken in once more, and deletes the certificates of the host, unless
// another has its name by now, which has its own.
func (r *Reconciler) sweep(ctx context.Context, s *scope, situation *removal.Situation, left removal.Leftover) error {
	seen, ok := r.observeEtcd(ctx, s, removal.Machine{})
	if !ok {
		return nil
	}
	step := situation.DecideLeftover(left, seen)
	switch step.Action {
	case removal.Release:
	case removal.RemoveMember:
		if !r.removeMember(ctx, s, step) {
			return nil
		}
	case removal.Wait, removal.MoveLeader: // which one that is gone cannot be
		r.block(s, step.Blocks())
		return nil
	}
	if left.Node != "" && seen.Node(left.Node) == nil {
		if err := r.Etcds.DeleteSecrets(ctx, s.ClusterKey(), left.Node); err != nil {
			r.failed(ctx, s, step, err)
			return nil
		}
		r.event(s.stored, "EtcdMemberCleanedUp", "Deleted the certificates of etcd on Node %s, which is gone", left.Node)
	}
	r.inspections.done(s.stored.UID, inspectionTasks...)
	return r.record(ctx, s, situation.Without(left))
}
