package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// steps is how much is done to etcd in one reconcile: once more after another member took the lead.
const steps = 2

// releaseHosts lets the hosts of control-plane Machines go that are being deleted: one after the other, and each once etcd does without it. When the cluster goes as a
// whole, all at once.
func (r *Reconciler) releaseHosts(ctx context.Context, s *scope) (bool, error) {
	if s.GoesWhole() {
		return true, r.dropHooks(ctx, s)
	}
	if !removal.Concerned(s.Facts) {
		return true, nil
	}
	asked, err := removal.Of(s.Facts)
	if err != nil {
		return false, err // which was told before, when what is recorded was to be cleaned up
	}
	if s.dropped(r.recent, asked) {
		return true, nil
	}
	due, before := asked.Due()
	switch {
	case before != nil:
		r.hold(s, *before)
		return true, nil
	case len(due) == 0:
		r.tellQuorum(ctx, s, asked)
		return true, nil
	}
	end, may := r.mayLook(s)
	if !may {
		return true, nil
	}
	defer end()
	for range steps {
		again, err := r.releaseNext(ctx, s, asked, due)
		if !again || err != nil {
			return true, err
		}
	}
	s.again.In(looksApart)
	return true, nil
}

// tellQuorum tells that etcd has lost its quorum while a Machine does not come to our hook yet: Cluster API drains it, which takes writes.
func (r *Reconciler) tellQuorum(ctx context.Context, s *scope, asked *removal.Asked) {
	at := slices.IndexFunc(asked.Machines, func(m removal.Machine) bool { return m.Held && !m.Deleted.IsZero() })
	if at < 0 {
		return
	}
	end, may := r.mayLook(s)
	if !may {
		return
	}
	defer end()
	serves, err := r.Etcds.Serves(ctx, s.ClusterKey())
	if serves || err != nil {
		r.looks.done(s.stored.UID)
		s.again.In(quorumLook) // that of a cluster is noticed elsewhere which does not answer
		return
	}
	step := removal.Lost()
	step.Machine = asked.Machines[at]
	r.hold(s, step)
}

// dropped tells whether a hook was dropped a moment ago, and the cache does not have it yet.
func (s *scope) dropped(recent *reconcile.Writes, asked *removal.Asked) bool {
	for i, m := range s.Machines {
		if left := recent.Unseen(hookKey(m), m.ResourceVersion); asked.Machines[i].Held && left > 0 {
			s.again.In(left)
			return true
		}
	}
	return false
}

func hookKey(m *clusterv1.Machine) string { return reconcile.Key("hook", m) }

// releaseNext does the next step, and tells whether another may follow. What the host leaves behind is recorded before anything is done: afterwards nothing tells of it.
func (r *Reconciler) releaseNext(ctx context.Context, s *scope, asked *removal.Asked, due []removal.Machine) (again bool, err error) {
	seen, ok := r.observeEtcd(ctx, s, due[0])
	if !ok {
		return false, nil
	}
	step := asked.Decide(due, seen)
	switch step.Action {
	case removal.Wait:
		r.hold(s, step)
		return false, nil
	case removal.MoveLeader:
		if err := r.Etcds.MoveLeader(ctx, s.ClusterKey(), step.Member, step.To); err != nil {
			r.failed(ctx, s, step, err)
			return false, nil
		}
		r.event(s.stored, "EtcdLeaderMoved", "Etcd is led by %s: Machine %s, which led it, is being deleted", step.To.Name, step.Machine.Name)
		return true, nil
	case removal.RemoveMember, removal.Release:
	}
	if noted, changed := asked.Noted(step.Leaves); changed {
		if err := r.record(ctx, s, noted); err != nil {
			return false, err
		}
	}
	if step.Action == removal.RemoveMember && !r.removeMember(ctx, s, step) {
		return false, nil
	}
	return false, r.releaseHost(ctx, s, step.Machine)
}

// observeEtcd looks at etcd, and says why that was not possible.
func (r *Reconciler) observeEtcd(ctx context.Context, s *scope, about removal.Machine) (*facts.Etcd, bool) {
	seen, err := r.Etcds.Observe(ctx, s.ClusterKey())
	switch {
	case errors.Is(err, workload.ErrNotConnected):
		step := s.disconnected()
		step.Machine = about
		r.hold(s, step)
		return nil, false
	case err != nil:
		r.failed(ctx, s, removal.Step{Machine: about}, err)
		return nil, false
	}
	return &seen, true
}

// disconnected says that nothing can be done while the cluster does not answer.
func (s *scope) disconnected() removal.Step {
	message := "the cluster's API server does not answer, so that nothing is known of etcd"
	if s.Workload.Failure != nil {
		message += ": " + s.Workload.Failure.Message
	}
	return removal.Watch(controlplanev1.ConnectionDownReason, "%s. Waiting until it does; if etcd has lost its quorum, restore it as OpenShift documents it. If the cluster is lost, delete the Cluster. If etcd "+
		"certainly does without the host, take the annotation %s off its Machine", message, controlplanev1.EtcdMemberHookAnnotation)
}

// failed notes that something could not be done to or learnt of etcd. What the cluster answers is for the log, once.
func (r *Reconciler) failed(ctx context.Context, s *scope, step removal.Step, err error) {
	if r.looks.before(s.stored.UID).failure != err.Error() {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot take a host out of etcd", "Machine", step.Machine.Name, "step", step.Action)
	}
	step.Reason, step.Message = controlplanev1.EtcdUnknownReason, etcd.Told(err)+"; it is tried again"
	r.holdFor(s, step, err.Error())
}

// removeMember takes a member out of etcd, and tells whether it did.
func (r *Reconciler) removeMember(ctx context.Context, s *scope, step removal.Step) bool {
	if err := r.Etcds.RemoveMember(ctx, s.ClusterKey(), step.Via, step.Member); err != nil {
		r.failed(ctx, s, step, err)
		return false
	}
	r.event(s.stored, "EtcdMemberRemoved", "Removed member %s from etcd: its Machine %s", cmp.Or(step.Member.Name, "without name"), gone(step.Machine))
	return true
}

// gone says of a Machine how far its deletion is.
func gone(m removal.Machine) string {
	if m.Name == "" {
		return "is gone"
	}
	return m.Name + " is being deleted"
}

// releaseHost lets a Machine go on whose host is no member of etcd.
func (r *Reconciler) releaseHost(ctx context.Context, s *scope, m removal.Machine) error {
	at := slices.IndexFunc(s.Machines, func(known *clusterv1.Machine) bool { return known.Name == m.Name })
	if err := r.dropHook(ctx, s.Machines[at]); err != nil {
		return err
	}
	r.looks.done(s.stored.UID)
	r.event(s.stored, "HostReleased", "The host of Machine %s is no member of etcd: it may be deprovisioned", m.Name)
	return nil
}

// record writes down which hosts were released.
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
	}
	return r.patchMetadata(ctx, s, after)
}

// dropHooks takes our hook off all Machines, those too that were taken out of the control plane.
func (r *Reconciler) dropHooks(ctx context.Context, s *scope) error {
	var errs []error
	for _, m := range slices.Concat(s.Machines, s.Workers) {
		if !removal.Holds(m) {
			continue
		}
		if left := r.recent.Unseen(hookKey(m), m.ResourceVersion); left > 0 {
			s.again.In(left)
			continue
		}
		errs = append(errs, r.dropHook(ctx, m))
	}
	return errors.Join(errs...)
}

// dropHook takes our hook off the Machine that was read, not off a later one of its name: whoever wrote the annotation, also a restored backup.
func (r *Reconciler) dropHook(ctx context.Context, m *clusterv1.Machine) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": m.UID, "annotations": map[string]any{controlplanev1.EtcdMemberHookAnnotation: nil}}})
	if err != nil {
		return fmt.Errorf("cannot encode annotations: %w", err)
	}
	version := m.ResourceVersion
	if err := r.Client.Patch(ctx, m.DeepCopy(), client.RawPatch(types.MergePatchType, patch), FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot take the hook off Machine %s: %w", m.Name, err)
	}
	r.recent.Wrote(hookKey(m), version)
	return nil
}
