package etcdremoval

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/quorum"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Hooks blocks Cluster API from a host until the host has left etcd. It uses the pre-terminate hook of the
// Machine, its exclusion from drains, and the annotation that protects the infrastructure machine.
type Hooks struct {
	client client.Client
	writer *writer.Writer
	clock  clock.PassiveClock
	// Silent records since when the kubelets of control-plane Nodes do not report.
	Silent *reconcile.StartTimes[string]
}

// NewHooks returns Hooks.
func NewHooks(c client.Client, w *writer.Writer, clk clock.PassiveClock) *Hooks {
	return &Hooks{client: c, writer: w, clock: clk, Silent: reconcile.NewStartTimes[string](clk)}
}

// beforeHooks are the reasons of the condition Deleting with which Cluster API has not changed the host, and
// reads hooks first. Source: reconcileDelete of its machine_controller.go, v1.12. An internal error may also
// occur later. The reason for waiting for hooks is not among them: if no other hook exists, a user may have
// removed ours.
var beforeHooks = []string{
	"", clusterv1.MachineDeletingReason, clusterv1.MachineDeletingInternalErrorReason, clusterv1.MachineDeletingWaitingForPreDrainHookReason,
	clusterv1.MachineDeletingDrainingNodeReason, clusterv1.MachineDeletingWaitingForVolumeDetachReason,
}

// addLate adds our hook to a Machine whose deletion was requested before the Machine had it. The installation
// had not ended by then, or an older provider without hooks was running. The drain of such a Machine may take
// hours. A hook that this provider dropped is never added again.
func (h *Hooks) addLate(ctx context.Context, s *scope.Scope, m *clusterv1.Machine) error {
	if left := h.writer.Recent.Pending(HookKey(m), m.ResourceVersion); left > 0 {
		s.Again.In(left)
		return nil
	}
	if !mayAddHookLate(s, m) {
		return nil
	}
	infra, err := kube.InfraMachine(ctx, h.client, m)
	if err != nil || infra == nil || !infra.GetDeletionTimestamp().IsZero() {
		return err // the host is already being deprovisioned
	}
	after := m.DeepCopy()
	annotations.AddAnnotations(after, map[string]string{controlplanev1.EtcdMemberHookAnnotation: ""})
	if err := kube.PatchMetadata(ctx, h.client, m, after, writer.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot add the etcd hook to Machine %s: %w", m.Name, err)
	}
	h.writer.Recent.Record(HookKey(m), m.ResourceVersion)
	s.Found.Event(corev1.EventTypeNormal, "HostReleaseBlocked", "Machine %s is being deleted: its host is kept until it has left etcd", m.Name)
	return nil
}

// mayAddHookLate reports whether our hook can still be added to a Machine that is being deleted, and its host
// was not released before. A release without Node is not recorded. Cluster API does not drain a Machine
// without Node, and deletes its host at once.
func mayAddHookLate(s *scope.Scope, m *clusterv1.Machine) bool {
	if !s.Installed() || s.ClusterDeleting() || removal.HasHook(m) || mayBeTouched(m) {
		return false
	}
	situation, err := s.Removal()
	if err != nil {
		return false // CleanUp reports the invalid record
	}
	at := slices.IndexFunc(situation.Machines, func(known quorum.Machine) bool { return known.Name == m.Name })
	return at >= 0 && situation.Machines[at].Node != "" && !situation.Released(situation.Machines[at])
}

// mayBeTouched reports whether Cluster API may have begun with the host of a Machine. It has not while it
// waits for the hook of another owner.
func mayBeTouched(m *clusterv1.Machine) bool {
	reason := conditions.GetReason(m, clusterv1.MachineDeletingCondition)
	return !slices.Contains(beforeHooks, reason) && (reason != clusterv1.MachineDeletingWaitingForPreTerminateHookReason ||
		!removal.WaitsForOthers(m))
}

// HookKey identifies the writes of the hook of a Machine in the memory of own writes.
func HookKey(m *clusterv1.Machine) string { return reconcile.Key("hook", m) }

// DropAll removes our hook from all Machines, also from those that were removed from the control plane. It
// ends the protection of their infrastructure machines.
func (h *Hooks) DropAll(ctx context.Context, s *scope.Scope) error {
	var errs []error
	for _, m := range protectable(s) {
		unprotected, err := h.unprotect(ctx, s, m)
		errs = append(errs, err) // the hook is dropped nevertheless: a failure must not block the deletion of the Cluster
		if err == nil && !unprotected || !removal.HasHook(m) {
			continue
		}
		if left := h.writer.Recent.Pending(HookKey(m), m.ResourceVersion); left > 0 {
			s.Again.In(left)
			continue
		}
		errs = append(errs, h.Drop(ctx, m))
	}
	return errors.Join(errs...)
}

// Drop removes our hook from the Machine that was read, not from a later one of its name. It does not matter
// which client wrote the annotation; it may come from a restored backup.
func (h *Hooks) Drop(ctx context.Context, m *clusterv1.Machine) error {
	removed := map[string]*string{controlplanev1.EtcdMemberHookAnnotation: nil}
	if err := h.writer.Annotate(ctx, HookKey(m), m, removed); err != nil {
		return fmt.Errorf("cannot remove the hook: %w", err)
	}
	return nil
}
