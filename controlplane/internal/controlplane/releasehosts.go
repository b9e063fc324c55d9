package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// releaseHosts lets the hosts of control-plane Machines go that are being deleted: one after the other, and each once
// etcd does without it. When the cluster goes as a whole, all at once.
func (r *Reconciler) releaseHosts(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.ClusterDeleting() {
		return true, r.dropHooks(ctx, s)
	}
	if !removal.Concerned(s.Facts) {
		return true, nil
	}
	situation, err := removal.Of(s.Facts)
	if err != nil {
		return false, err // which was told before, when what is recorded was to be cleaned up
	}
	if dropped(s, r.writer.Recent, situation) {
		return true, nil
	}
	due, before := situation.Due()
	switch {
	case before != nil && s.Found.Blocked(status.HostRelease) != nil: // that of the host that comes first is told
		return true, nil
	case before != nil:
		r.gate.Block(s, *before)
		return true, nil
	case len(due) == 0:
		if draining := situation.Draining(); draining != nil && s.Found.Blocked(status.HostRelease) == nil {
			r.gate.Block(s, *draining)
		}
		r.reportQuorum(ctx, s, situation)
		return true, nil
	}
	inspection := r.gate.Begin(s, status.HostRelease)
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

// reportQuorum tells that etcd has lost its quorum while a Machine does not come to our hook yet: Cluster API drains
// it, which takes writes.
func (r *Reconciler) reportQuorum(ctx context.Context, s *scope.Scope, situation *removal.Situation) {
	at := slices.IndexFunc(situation.Machines, func(m removal.Machine) bool { return m.Held && !m.Deleted.IsZero() })
	if at < 0 {
		return
	}
	m := situation.Machines[at]
	r.gate.InBackground(s, "quorum "+string(m.UID), 0, math.MaxInt, func() (found *decision.Blocker, changed bool) {
		serves, err := r.Etcds.Serves(ctx, s.ClusterKey())
		if serves || err != nil {
			return nil, false // that of a cluster is noticed elsewhere which does not answer
		}
		lost := m.NotTouched(removal.Lost())
		return &lost, false
	})
}

// dropped reports whether a hook was dropped a moment ago, and the cache does not have it yet.
func dropped(s *scope.Scope, recent *reconcile.RecentWrites, situation *removal.Situation) bool {
	for i, m := range s.Machines {
		if left := recent.Pending(hookKey(m), m.ResourceVersion); situation.Machines[i].Held && left > 0 {
			s.Again.In(left)
			return true
		}
	}
	return false
}

func hookKey(m *clusterv1.Machine) string { return reconcile.Key("hook", m) }

// releaseNext does the next step. moved reports whether that was to make another member lead: then the next may follow,
// unless the leader handedOver before. What the host leaves behind is recorded before anything is done: afterwards
// nothing tells of it.
func (r *Reconciler) releaseNext(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, situation *removal.Situation, due []removal.Machine, handedOver bool) (moved bool, err error) {
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
	if err := r.recordLeftover(ctx, s, situation, step.Leaves); err != nil {
		return false, err
	}
	if step.Action == removal.RemoveMember && !r.removeMember(ctx, s, inspection, step) {
		return false, nil
	}
	return false, r.releaseHost(ctx, s, situation, step)
}

// recordLeftover records what a host leaves behind, unless that is known.
func (r *Reconciler) recordLeftover(ctx context.Context, s *scope.Scope, situation *removal.Situation, left removal.Leftover) error {
	noted, changed := situation.Recorded(left)
	if !changed {
		return nil
	}
	situation.Leftovers = noted
	return r.record(ctx, s, noted)
}

// moveLeader makes another member lead, and reports whether it could be told to.
func (r *Reconciler) moveLeader(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, step removal.Step) bool {
	s.Inspection = scope.EtcdInspection{}
	if err := r.Etcds.MoveLeader(ctx, s.ClusterKey(), step.Member, step.To); err != nil {
		inspection.Failed(ctx, step, err)
		return false
	}
	r.writer.Event(s.Stored, "EtcdLeaderMoved", "Etcd is led by %s: Machine %s, which led it, is being deleted", step.To.Name, step.Machine.Name)
	return true
}

// removeMember takes a member out of etcd, and reports whether it did.
func (r *Reconciler) removeMember(ctx context.Context, s *scope.Scope, inspection *etcdgate.Inspection, step removal.Step) bool {
	s.Inspection = scope.EtcdInspection{}
	if err := r.Etcds.RemoveMember(ctx, s.ClusterKey(), step.Via, step.Member); err != nil {
		inspection.Failed(ctx, step, err)
		return false
	}
	r.writer.Event(s.Stored, "EtcdMemberRemoved", "Removed member %s from etcd: its Machine %s", cmp.Or(step.Member.Name, "without name"), deletionProgress(step.Machine))
	return true
}

// deletionProgress says of a Machine how far its deletion is.
func deletionProgress(m removal.Machine) string {
	if m.Name == "" {
		return "is gone"
	}
	return m.Name + " is being deleted"
}

// releaseHost lets a Machine go on whose host is no member of etcd, and records when.
func (r *Reconciler) releaseHost(ctx context.Context, s *scope.Scope, situation *removal.Situation, step removal.Step) error {
	m := machineNamed(s, step.Machine.Name)
	if unprotected, err := r.unprotectHost(ctx, s, m); err != nil || !unprotected {
		return err
	}
	released := step.Leaves
	released.Released = ptr.To(metav1.NewTime(r.Clock.Now().UTC().Truncate(time.Second)))
	if err := r.recordLeftover(ctx, s, situation, released); err != nil {
		return err
	}
	if err := r.dropHook(ctx, m); err != nil {
		return err
	}
	r.gate.Done(s)
	r.writer.Event(s.Stored, "HostReleased", "The host of Machine %s is no member of etcd: it may be deprovisioned", m.Name)
	return nil
}

// record writes down which hosts were released, and keeps the cluster here as long as there is one: a single node that
// is only held may be moved.
func (r *Reconciler) record(ctx context.Context, s *scope.Scope, leftovers []removal.Leftover) error {
	recorded, err := removal.Record(leftovers)
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

// dropHooks takes our hook off all Machines, those too that were taken out of the control plane, and ends the
// protection of their infrastructure machines.
func (r *Reconciler) dropHooks(ctx context.Context, s *scope.Scope) error {
	var errs []error
	for _, m := range protectable(s) {
		unprotected, err := r.unprotectHost(ctx, s, m)
		errs = append(errs, err) // the hook is dropped all the same: nothing may keep a Cluster from being deleted
		if err == nil && !unprotected || !removal.Holds(m) {
			continue
		}
		if left := r.writer.Recent.Pending(hookKey(m), m.ResourceVersion); left > 0 {
			s.Again.In(left)
			continue
		}
		errs = append(errs, r.dropHook(ctx, m))
	}
	return errors.Join(errs...)
}

// dropHook takes our hook off the Machine that was read, not off a later one of its name: whoever wrote the annotation,
// also a restored backup.
func (r *Reconciler) dropHook(ctx context.Context, m *clusterv1.Machine) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "annotations": map[string]any{controlplanev1.EtcdMemberHookAnnotation: nil}}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations: %w", err)
	}
	version := m.ResourceVersion
	if err := r.Client.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, patch), writer.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot take the hook off Machine %s: %w", m.Name, err)
	}
	r.writer.Recent.Record(hookKey(m), version)
	return nil
}
