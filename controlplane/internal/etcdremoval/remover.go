// Package etcdremoval removes the host of a control-plane Machine that is being deleted from etcd. Cluster API
// touches the host afterwards. Then the package cleans up what the host leaves in the cluster.
package etcdremoval

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Etcds changes the members of the etcd of workload clusters.
type Etcds interface {
	Serves(ctx context.Context, cluster client.ObjectKey) (bool, error)
	MoveLeader(ctx context.Context, cluster client.ObjectKey, leader, to workload.EtcdMember) error
	RemoveMember(ctx context.Context, cluster client.ObjectKey, via, member workload.EtcdMember) error
	DeleteSecrets(ctx context.Context, cluster client.ObjectKey, node string) error
	DeleteNode(ctx context.Context, cluster client.ObjectKey, node workload.ControlPlaneNode) error
}

// Remover removes the hosts of Machines that are being deleted from etcd, one after the other, and then releases them.
type Remover struct {
	etcds  Etcds
	gate   *etcdgate.Gate
	hooks  *Hooks
	writer *writer.Writer
	clock  clock.PassiveClock
}

// NewRemover returns a Remover.
func NewRemover(etcds Etcds, gate *etcdgate.Gate, hooks *Hooks, w *writer.Writer, clk clock.PassiveClock) *Remover {
	return &Remover{etcds: etcds, gate: gate, hooks: hooks, writer: w, clock: clk}
}

// Release releases the hosts of control-plane Machines that are being deleted, one after the other, each as
// soon as etcd can spare it. If the whole cluster is being deleted, it releases all at once.
func (r *Remover) Release(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.ClusterDeleting() {
		return true, r.hooks.DropAll(ctx, s)
	}
	if !removal.Needed(s.Facts) {
		return true, nil
	}
	situation, err := s.Removal()
	if err != nil {
		return false, err // CleanUp has reported the invalid record
	}
	if dropped(s, r.writer.Recent, situation) {
		return true, nil
	}
	due, blocker := situation.Due()
	switch {
	case blocker != nil && s.Found.Blocked(tasks.HostRelease) != nil: // the blocker of the first host is reported
		return true, nil
	case blocker != nil:
		r.gate.Block(s, *blocker)
		return true, nil
	case len(due) == 0:
		if draining := situation.Draining(); draining != nil && s.Found.Blocked(tasks.HostRelease) == nil {
			r.gate.Block(s, *draining)
		}
		r.reportQuorum(ctx, s, situation)
		return true, nil
	}
	inspection := r.gate.Begin(s, tasks.HostRelease)
	if inspection == nil {
		return true, nil
	}
	defer inspection.End()
	moved, err := r.releaseNext(ctx, s, inspection, situation, due, false)
	if moved && err == nil {
		_, err = r.releaseNext(ctx, s, inspection, situation, due, true)
	}
	return true, err
}

// reportQuorum reports that etcd has lost its quorum while a Machine has not reached our hook yet. Cluster
// API drains the Machine meanwhile, and a drain writes to etcd.
func (r *Remover) reportQuorum(ctx context.Context, s *scope.Scope, situation *removal.Situation) {
	at := slices.IndexFunc(situation.Machines, func(m quorum.Machine) bool { return m.HasHook && !m.Deleted.IsZero() })
	if at < 0 {
		return
	}
	m := situation.Machines[at]
	r.gate.InBackground(s, "quorum "+string(m.UID), 0, math.MaxInt, func() (found *decision.Blocker, changed bool) {
		serves, err := r.etcds.Serves(ctx, s.ClusterKey())
		if serves || err != nil {
			return nil, false // the condition Available reports a cluster that does not answer
		}
		lost := m.NotTouched(quorum.Lost())
		return &lost, false
	})
}

// dropped reports whether a hook was dropped a moment ago, and the cache does not have the change yet.
func dropped(s *scope.Scope, recent *reconcile.RecentWrites, situation *removal.Situation) bool {
	for i, m := range s.Machines {
		if left := recent.Pending(HookKey(m), m.ResourceVersion); situation.Machines[i].HasHook && left > 0 {
			s.Again.In(left)
			return true
		}
	}
	return false
}

// releaseNext executes the next step. moved reports whether the step made another member the leader. Then the
// next step may follow, unless the leader was already handedOver. It records the host before
// the step, because afterwards no object names the host.
func (r *Remover) releaseNext(
	ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, situation *removal.Situation, due []quorum.Machine, handedOver bool,
) (moved bool, err error) {
	seen := inspection.Etcd(ctx, due[0])
	if seen == nil {
		return false, nil
	}
	step := situation.Decide(due, seen)
	switch step.Action {
	case removal.Wait:
		inspection.Block(step.Blocks())
		return false, nil
	case removal.MoveLeader:
		if handedOver {
			inspection.Block(removal.NotLed(step).Blocks())
			return false, nil
		}
		return r.moveLeader(ctx, s, inspection, step), nil
	case removal.RemoveMember, removal.Release:
	}
	if err := r.recordHost(ctx, s, situation, step.Leaves); err != nil {
		return false, err
	}
	if step.Action == removal.RemoveMember && !r.removeMember(ctx, s, inspection, step) {
		return false, nil
	}
	return false, r.releaseHost(ctx, s, situation, step)
}

// recordHost records a host that leaves etcd, unless it is recorded already.
func (r *Remover) recordHost(ctx context.Context, s *scope.Scope, situation *removal.Situation, left removal.ReleasedHost) error {
	hosts, changed := situation.Recorded(left)
	if !changed {
		return nil
	}
	situation.ReleasedHosts = hosts
	return r.Record(ctx, s, hosts)
}

// moveLeader makes another member the leader, and reports whether the request succeeded.
func (r *Remover) moveLeader(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, step removal.Step) bool {
	s.Inspection = scope.EtcdInspection{}
	if err := r.etcds.MoveLeader(ctx, s.ClusterKey(), step.Member, step.To); err != nil {
		inspection.Failed(ctx, step, err)
		return false
	}
	s.Found.Event(corev1.EventTypeNormal, "EtcdLeaderMoved", "Etcd is led by %s: Machine %s, which led it, is being deleted", step.To.Name,
		step.Machine.Name)
	return true
}

// removeMember removes a member from etcd, and reports whether it succeeded.
func (r *Remover) removeMember(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, step removal.Step) bool {
	s.Inspection = scope.EtcdInspection{}
	if err := r.etcds.RemoveMember(ctx, s.ClusterKey(), step.Via, step.Member); err != nil {
		inspection.Failed(ctx, step, err)
		return false
	}
	s.Found.Event(corev1.EventTypeNormal, "EtcdMemberRemoved",
		"Removed member %s from etcd: its Machine %s",
		cmp.Or(step.Member.Name, "without name"),
		deletionProgress(step.Machine),
	)
	return true
}

// deletionProgress describes the deletion of a Machine, for events.
func deletionProgress(m quorum.Machine) string {
	if m.Name == "" {
		return "is deleted"
	}
	return m.Name + " is being deleted"
}

// releaseHost lets Cluster API delete a Machine whose host is not a member of etcd, and records when.
func (r *Remover) releaseHost(ctx context.Context, s *scope.Scope, situation *removal.Situation, step removal.Step) error {
	m := machineNamed(s, step.Machine.Name)
	if unprotected, err := r.hooks.unprotect(ctx, s, m); err != nil || !unprotected {
		return err
	}
	released := step.Leaves
	released.Released = ptr.To(metav1.NewTime(r.clock.Now().UTC().Truncate(time.Second)))
	if err := r.recordHost(ctx, s, situation, released); err != nil {
		return err
	}
	if err := r.hooks.Drop(ctx, m); err != nil {
		return err
	}
	r.gate.Done(s)
	s.Found.Event(corev1.EventTypeNormal, "HostReleased", "The host of Machine %s is no member of etcd: it may be deprovisioned", m.Name)
	return nil
}

// Record records which hosts were released, and blocks the move of the cluster while there is one. A single
// node with our hook is not released, and may be moved.
func (r *Remover) Record(ctx context.Context, s *scope.Scope, hosts []removal.ReleasedHost) error {
	recorded, err := removal.Record(hosts)
	if err != nil {
		return fmt.Errorf("cannot record released hosts: %w", err)
	}
	after := s.Stored.DeepCopy()
	if recorded == "" {
		delete(after.Annotations, controlplanev1.ReleasedHostsAnnotation)
	} else {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, controlplanev1.ReleasedHostsAnnotation, recorded)
		if _, blocked := after.Annotations[clusterctlv1.BlockMoveAnnotation]; !blocked {
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterctlv1.BlockMoveAnnotation, move.RemovingHosts)
		}
	}
	return r.writer.PatchMetadata(ctx, s, after)
}
