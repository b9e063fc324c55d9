package etcdremoval

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// CleanUp cleans up after released hosts, one host after the other, after Machine and Node are
// deleted. No other change of etcd happens meanwhile.
func (r *Remover) CleanUp(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.ClusterDeleting() || !removal.Needed(s.Facts) {
		return true, nil
	}
	situation, err := s.Removal()
	if err != nil {
		r.gate.Block(
			s,
			decision.Watch(
				controlplanev1.InvalidConfigurationReason,
				"%s. The provider writes this annotation. Remove it from the control plane, and check whether etcd has members "+
					"whose hosts do not exist",
				err,
			),
		)
		return false, nil // for the user to correct
	}
	for _, left := range situation.ReleasedHosts {
		if state := situation.StateOf(left); state != removal.Leaving && state != removal.Unconfirmed {
			return false, r.cleanUpHost(ctx, s, situation, left, state)
		}
		if m, found := situation.DeletingMachine(left); found {
			if err := r.checkReleasedHost(ctx, s, situation, left, m); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// MaxLeavingChecks is the number of checks whether a released host became a member of etcd again, without a
// finding. They take half an hour. A host that still runs afterwards will not be switched off.
const MaxLeavingChecks = 30

// checkReleasedHost checks a released host that may still run. OpenShift adds a running host to etcd again,
// and then the host would be wiped while it has a vote.
func (r *Remover) checkReleasedHost(
	ctx context.Context, s *scope.Scope, situation *removal.Situation, left removal.ReleasedHost, m quorum.Machine,
) (err error) {
	limit := MaxLeavingChecks
	if at := slices.IndexFunc(
		s.Machines, func(known *clusterv1.Machine) bool { return known.UID == m.UID },
	); at >= 0 && conditions.IsTrue(s.Machines[at], clusterv1.MachineNodeReadyCondition) {
		limit = math.MaxInt // OpenShift adds a running host again, however long its infrastructure exists
	}
	r.gate.InBackground(s, "leaving "+string(m.UID), etcdgate.InitialBackgroundDelay, limit, func() (found *decision.Blocker, changed bool) {
		seen, failure := r.gate.Read(ctx, s)
		if failure != nil {
			ctrl.LoggerFrom(ctx).V(1).Info(
				"Cannot see whether a released host is a member of etcd again", "Machine", m.Name, "reason", failure.Error(),
			)
			return nil, false // the condition Available reports a cluster that does not answer
		}
		step := situation.DecideLeaving(m, left, &seen)
		s.Inspection = scope.EtcdInspection{} // the step may change etcd
		switch step.Action {
		case removal.Release:
			return nil, false
		case removal.Wait:
		case removal.MoveLeader:
			failure = r.etcds.MoveLeader(ctx, s.ClusterKey(), step.Member, step.To)
		case removal.RemoveMember:
			if err = r.recordHost(ctx, s, situation, step.Leaves); err != nil {
				return nil, false
			}
			failure = r.etcds.RemoveMember(ctx, s.ClusterKey(), step.Via, step.Member)
		}
		return r.reportLeaving(ctx, s, step, failure)
	})
	return err
}

// reportLeaving returns the blocker to report for a released host that has to leave etcd again.
func (r *Remover) reportLeaving(
	ctx context.Context, s *scope.Scope, step removal.Step, failure error,
) (found *decision.Blocker, changed bool) {
	blocker := step.Blocker
	switch {
	case failure != nil:
		ctrl.LoggerFrom(ctx).V(1).Info(
			"Cannot remove a released host from etcd", "Machine", step.Machine.Name, "step", step.Action, "reason", failure.Error(),
		)
		blocker = decision.Wait(controlplanev1.EtcdUnknownReason, "%s. The provider retries", etcd.Describe(failure))
	case step.Action == removal.RemoveMember:
		s.Found.Event(corev1.EventTypeNormal, "EtcdMemberRemoved",
			"Removed member %s, which had joined again, from etcd: its Machine %s",
			cmp.Or(step.Member.Name, "without name"),
			deletionProgress(step.Machine),
		)
		return nil, true
	case step.Action == removal.MoveLeader:
		return nil, true
	}
	blocker.Watched = false
	blocker = blocker.About("Machine %s is being removed, and its host may be in etcd again", step.Machine.Name)
	return &blocker, false
}

// cleanUpHost cleans up after a host whose Machine is not being deleted, or no longer exists.
func (r *Remover) cleanUpHost(
	ctx context.Context, s *scope.Scope, situation *removal.Situation, left removal.ReleasedHost, state removal.HostState,
) error {
	if !s.Workload.Known() {
		blocker := etcdgate.Disconnected(s)
		if s.Workload.Connected {
			blocker = decision.Watch(controlplanev1.HealthUnknownReason, "the Nodes of the cluster cannot be read, see the condition Available")
		}
		r.gate.Block(s, blocker.About("what the host of %s has left behind cannot be cleaned up", left.Origin()))
		return nil
	}
	if rests := left.Stalled(state); rests != nil {
		r.gate.Block(s, *rests)
		return nil
	}
	if state == removal.Staying {
		return r.Record(ctx, s, situation.Without(left))
	}
	inspection := r.gate.Begin(s, tasks.HostRelease)
	if inspection == nil {
		return nil
	}
	defer inspection.End()
	if state == removal.Remaining {
		r.deleteNode(ctx, s, inspection, situation, left)
		return nil
	}
	return r.sweep(ctx, s, inspection, situation, left)
}

// deleteNode deletes the Node of a released host that Cluster API did not delete. The watch of Nodes triggers
// the next reconcile, which cleans up the rest.
func (r *Remover) deleteNode(
	ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, situation *removal.Situation, left removal.ReleasedHost,
) {
	seen := inspection.Etcd(ctx, quorum.Machine{})
	if seen == nil {
		return
	}
	node, against := situation.DecideNode(left, seen, r.nodeSilence(seen.Node(left.Node)))
	if against != nil {
		inspection.Block(*against)
		return
	}
	s.Inspection = scope.EtcdInspection{}
	switch err := r.etcds.DeleteNode(ctx, s.ClusterKey(), *node); {
	case apierrors.IsConflict(err):
		inspection.Block(removal.NodeChanged(left))
		return
	case apierrors.IsForbidden(err):
		inspection.Block(removal.NodeForbidden(left))
		return
	case err != nil && !apierrors.IsNotFound(err):
		inspection.Failed(ctx, removal.Step{}, err)
		return
	case err == nil:
		s.Found.Event(corev1.EventTypeNormal, "NodeDeleted",
			"Deleted Node %s, which Cluster API left behind: its host left etcd, its Machine was deleted, and its kubelet does not report",
			node.Name,
		)
	}
	inspection.Block(removal.NodeDeleting(left)) // a finalizer may block the end of the deletion
}

// nodeSilence returns for how long this process has observed that the kubelet of a Node does not report. A Node that
// registers again has another UID and starts again.
func (r *Remover) nodeSilence(node *workload.ControlPlaneNode) time.Duration {
	if node == nil {
		return 0
	}
	return r.hooks.silence("silence of Node "+string(node.UID), node.Silent)
}

// sweep removes a member that was added again from etcd, and deletes the certificates of the host. It keeps
// them if another Node has the name of the host by now, because they belong to that Node.
func (r *Remover) sweep(
	ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, situation *removal.Situation, left removal.ReleasedHost,
) error {
	seen := inspection.Etcd(ctx, quorum.Machine{})
	if seen == nil {
		return nil
	}
	step := situation.DecideReleased(left, seen)
	switch step.Action {
	case removal.Release:
	case removal.RemoveMember:
		if !r.removeMember(ctx, s, inspection, step) {
			return nil
		}
	case removal.Wait, removal.MoveLeader: // a deleted host cannot be leader
		inspection.Block(step.Blocks())
		return nil
	}
	if left.Node != "" && seen.Node(left.Node) == nil {
		if err := r.etcds.DeleteSecrets(ctx, s.ClusterKey(), left.Node); err != nil {
			inspection.Failed(ctx, step, err)
			return nil
		}
		s.Found.Event(corev1.EventTypeNormal, "EtcdMemberCleanedUp", "Deleted the certificates of etcd on Node %s, which is deleted", left.Node)
	}
	r.gate.Done(s)
	return r.Record(ctx, s, situation.Without(left))
}
