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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// releaseHosts lets the hosts of control-plane Machines go that are being deleted: one after the other, and each once
// etcd does without it. When the cluster goes as a whole, all at once.
func (r *Reconciler) releaseHosts(ctx context.Context, s *scope) (bool, error) {
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
	if s.dropped(r.recent, situation) {
		return true, nil
	}
	due, before := situation.Due()
	switch {
	case before != nil && s.found.Blocked(status.HostRelease) != nil: // that of the host that comes first is told
		return true, nil
	case before != nil:
		r.block(s, *before)
		return true, nil
	case len(due) == 0:
		if draining := situation.Draining(); draining != nil && s.found.Blocked(status.HostRelease) == nil {
			r.block(s, *draining)
		}
		r.reportQuorum(ctx, s, situation)
		return true, nil
	}
	end, may := r.mayInspect(s, status.HostRelease)
	if !may {
		return true, nil
	}
	defer end()
	moved, err := r.releaseNext(ctx, s, situation, due, false)
	if moved && err == nil {
		_, err = r.releaseNext(ctx, s, situation, due, true)
	}
	return true, err
}

// reportQuorum tells that etcd has lost its quorum while a Machine does not come to our hook yet: Cluster API drains
// it, which takes writes.
func (r *Reconciler) reportQuorum(ctx context.Context, s *scope, situation *removal.Situation) {
	at := slices.IndexFunc(situation.Machines, func(m removal.Machine) bool { return m.Held && !m.Deleted.IsZero() })
	if at < 0 {
		return
	}
	m := situation.Machines[at]
	r.checkInBackground(s, "quorum "+string(m.UID), 0, math.MaxInt, func() (found *decision.Blocker, changed bool) {
		serves, err := r.Etcds.Serves(ctx, s.ClusterKey())
		if serves || err != nil {
			return nil, false // that of a cluster is noticed elsewhere which does not answer
		}
		lost := m.NotTouched(removal.Lost())
		return &lost, false
	})
}

// dropped reports whether a hook was dropped a moment ago, and the cache does not have it yet.
func (s *scope) dropped(recent *reconcile.RecentWrites, situation *removal.Situation) bool {
	for i, m := range s.Machines {
		if left := recent.Pending(hookKey(m), m.ResourceVersion); situation.Machines[i].Held && left > 0 {
			s.again.In(left)
			return true
		}
	}
	return false
}

func hookKey(m *clusterv1.Machine) string { return reconcile.Key("hook", m) }

// releaseNext does the next step. moved reports whether that was to make another member lead: then the next may follow,
// unless the leader handedOver before. What the host leaves behind is recorded before anything is done: afterwards
// nothing tells of it.
func (r *Reconciler) releaseNext(ctx context.Context, s *scope, situation *removal.Situation, due []removal.Machine, handedOver bool) (moved bool, err error) {
	seen, ok := r.observeEtcd(ctx, s, due[0])
	if !ok {
		return false, nil
	}
	step := situation.Decide(due, seen)
	switch step.Action {
	case removal.Wait:
		r.block(s, step.Blocks())
		return false, nil
	case removal.MoveLeader:
		if handedOver {
			r.block(s, removal.NotLed(step).Blocks())
			return false, nil
		}
		return r.moveLeader(ctx, s, step), nil
	case removal.RemoveMember, removal.Release:
	}
	if err := r.recordLeftover(ctx, s, situation, step.Leaves); err != nil {
		return false, err
	}
	if step.Action == removal.RemoveMember && !r.removeMember(ctx, s, step) {
		return false, nil
	}
	return false, r.releaseHost(ctx, s, situation, step)
}

// recordLeftover records what a host leaves behind, unless that is known.
func (r *Reconciler) recordLeftover(ctx context.Context, s *scope, situation *removal.Situation, left removal.Leftover) error {
	noted, changed := situation.Recorded(left)
	if !changed {
		return nil
	}
	situation.Leftovers = noted
	return r.record(ctx, s, noted)
}

// seeEtcd looks at etcd, unless this reconcile did, and nothing was changed since.
func (r *Reconciler) seeEtcd(ctx context.Context, s *scope) (*facts.Etcd, error) {
	if (s.inspection == etcdInspection{}) {
		seen, err := r.readEtcd(ctx, s)
		s.inspection = etcdInspection{&seen, err}
	}
	return s.inspection.etcd, s.inspection.err
}

// readEtcd reads etcd, and notes whether a member does not answer.
func (r *Reconciler) readEtcd(ctx context.Context, s *scope) (facts.Etcd, error) {
	seen, err := r.Etcds.Observe(ctx, s.ClusterKey())
	s.memberSilent = s.memberSilent || err == nil && seen.Silent()
	return seen, err
}

// observeEtcd is what is seen of etcd. It says why that was not possible.
func (r *Reconciler) observeEtcd(ctx context.Context, s *scope, about removal.Machine) (*facts.Etcd, bool) {
	seen, err := r.seeEtcd(ctx, s)
	switch {
	case errors.Is(err, cluster.ErrNotConnected):
		r.block(s, about.NotTouched(s.disconnected()))
		return nil, false
	case err != nil:
		r.failed(ctx, s, removal.Step{Machine: about}, err)
		return nil, false
	}
	return seen, true
}

// disconnected says that nothing can be done while the cluster does not answer.
func (s *scope) disconnected() decision.Blocker {
	message := "the cluster's API server does not answer, so that nothing is known of etcd"
	if s.Workload.Failure != nil {
		message += ": " + s.Workload.Failure.Message
	}
	return decision.Watch(controlplanev1.ConnectionDownReason, "%s. Waiting until it does; if etcd has lost its quorum, restore it as OpenShift documents it. If the cluster is lost, delete the Cluster, which wipes its hosts. If etcd "+
		"certainly does without the host, take the annotation %s off its Machine", message, controlplanev1.EtcdMemberHookAnnotation)
}

// failed notes that something could not be done to or learnt of etcd. What the cluster answers is for the log, once.
func (r *Reconciler) failed(ctx context.Context, s *scope, step removal.Step, err error) {
	failure := etcd.Describe(err)
	if r.inspections.before(inspectionKey{s.stored.UID, s.looking}).failure != failure {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot look at etcd, or change its members", "Machine", step.Machine.Name, "step", step.Action)
	}
	r.blockFor(s, step.Machine.NotTouched(decision.Wait(controlplanev1.EtcdUnknownReason, "%s; it is tried again", failure)), failure)
}

// moveLeader makes another member lead, and reports whether it could be told to.
func (r *Reconciler) moveLeader(ctx context.Context, s *scope, step removal.Step) bool {
	s.inspection = etcdInspection{}
	if err := r.Etcds.MoveLeader(ctx, s.ClusterKey(), step.Member, step.To); err != nil {
		r.failed(ctx, s, step, err)
		return false
	}
	r.event(s.stored, "EtcdLeaderMoved", "Etcd is led by %s: Machine %s, which led it, is being deleted", step.To.Name, step.Machine.Name)
	return true
}

// removeMember takes a member out of etcd, and reports whether it did.
func (r *Reconciler) removeMember(ctx context.Context, s *scope, step removal.Step) bool {
	s.inspection = etcdInspection{}
	if err := r.Etcds.RemoveMember(ctx, s.ClusterKey(), step.Via, step.Member); err != nil {
		r.failed(ctx, s, step, err)
		return false
	}
	r.event(s.stored, "EtcdMemberRemoved", "Removed member %s from etcd: its Machine %s", cmp.Or(step.Member.Name, "without name"), deletionProgress(step.Machine))
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
func (r *Reconciler) releaseHost(ctx context.Context, s *scope, situation *removal.Situation, step removal.Step) error {
	m := s.machineNamed(step.Machine.Name)
	if unprotected, err := r.unprotectHost(ctx, s, m); err != nil || !unprotected {
		return err
	}
	released := step.Leaves
	released.Released = ptr.To(metav1.NewTime(r.now().UTC().Truncate(time.Second)))
	if err := r.recordLeftover(ctx, s, situation, released); err != nil {
		return err
	}
	if err := r.dropHook(ctx, m); err != nil {
		return err
	}
	r.inspections.done(s.stored.UID, inspectionTasks...)
	r.event(s.stored, "HostReleased", "The host of Machine %s is no member of etcd: it may be deprovisioned", m.Name)
	return nil
}

// record writes down which hosts were released, and keeps the cluster here as long as there is one: a single node that
// is only held may be moved.
func (r *Reconciler) record(ctx context.Context, s *scope, leftovers []removal.Leftover) error {
	recorded, err := removal.Record(leftovers)
	if err != nil {
		return fmt.Errorf("cannot record released hosts: %w", err)
	}
	after := s.stored.DeepCopy()
	if recorded == "" {
		delete(after.Annotations, controlplanev1.ReleasedHostsAnnotation)
	} else {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, controlplanev1.ReleasedHostsAnnotation, recorded)
		if _, blocked := after.Annotations[clusterctlv1.BlockMoveAnnotation]; !blocked {
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, clusterctlv1.BlockMoveAnnotation, whileHostsGo)
		}
	}
	return r.patchMetadata(ctx, s, after)
}

// dropHooks takes our hook off all Machines, those too that were taken out of the control plane, and ends the
// protection of their infrastructure machines.
func (r *Reconciler) dropHooks(ctx context.Context, s *scope) error {
	var errs []error
	for _, m := range protectable(s) {
		unprotected, err := r.unprotectHost(ctx, s, m)
		errs = append(errs, err) // the hook is dropped all the same: nothing may keep a Cluster from being deleted
		if err == nil && !unprotected || !removal.Holds(m) {
			continue
		}
		if left := r.recent.Pending(hookKey(m), m.ResourceVersion); left > 0 {
			s.again.In(left)
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
	if err := r.Client.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, patch), FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot take the hook off Machine %s: %w", m.Name, err)
	}
	r.recent.Record(hookKey(m), version)
	return nil
}
