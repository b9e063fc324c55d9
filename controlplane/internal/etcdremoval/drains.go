package etcdremoval

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/ownership"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status/replicas"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// ExcludeGuards excludes guard Pods from the drains of control-plane Nodes. It runs after AddLateHooks and
// Sync. Therefore no Node is drained faster before its Machine has our hook. A foreign rule of the same name
// is reported and not changed.
func (h *Hooks) ExcludeGuards(ctx context.Context, s *scope.Scope) (bool, error) {
	rule := desired.DrainRule(s.Facts)
	if rule == nil {
		return true, nil
	}
	observed, err := kube.Read(ctx, h.client, client.ObjectKeyFromObject(rule), &clusterv1.MachineDrainRule{})
	if err != nil {
		return false, err
	}
	if observed != nil && !ownership.OwnsDrainRule(s.Facts, observed) {
		s.Found.Block(tasks.GuardExclusion, controlplanev1.DrainRuleNotOursReason, replicas.ForeignDrainRule(rule.Name))
		return true, nil
	}
	switch err := h.writer.Apply(ctx, s, rule, observed); {
	case errors.Is(err, writer.ErrNotCached):
		s.Again.In(reconcile.CacheLag)
	case err != nil:
		return false, fmt.Errorf("cannot exclude guard Pods from drains: %w", err)
	}
	return true, nil
}

// AddLateHooks adds the missing hook to each Machine that is being deleted, and excludes it from a drain that must not
// begin. The hook is written first: without drain and hook Cluster API would proceed to the host of an etcd member.
func (h *Hooks) AddLateHooks(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Cluster == nil {
		return true, nil
	}
	var errs []error
	for _, m := range s.Found.Machines {
		silence := h.silence(SilenceKey(m), facts.NodeUnreachable(m))
		if !m.DeletionTimestamp.IsZero() {
			errs = append(errs, h.addLate(ctx, s, m), h.excludeDrain(ctx, s, m, silence))
		}
	}
	return true, errors.Join(errs...)
}

// excludeDrain blocks a drain of a Machine that is being deleted if the drain would never end, or must not
// begin. A Machine without our hook is never excluded: only the drain may block Cluster API from its host.
func (h *Hooks) excludeDrain(ctx context.Context, s *scope.Scope, m *clusterv1.Machine, silence time.Duration) error {
	if !removal.HasHook(m) {
		return nil
	}
	if left := h.writer.Recent.Pending(HookKey(m), m.ResourceVersion); left > 0 {
		s.Again.In(left)
		return nil
	}
	after := m.DeepCopy()
	desired.SetDrainExclusion(s.Facts, after, m, silence)
	if maps.Equal(m.Annotations, after.Annotations) {
		if facts.NodeUnreachable(m) && silence < facts.UnreachableTime {
			s.Again.In(facts.UnreachableTime - silence)
		}
		return nil
	}
	if err := kube.PatchMetadata(ctx, h.client, m, after, writer.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot exclude Machine %s from drains: %w", m.Name, err)
	}
	h.writer.Recent.Record(HookKey(m), m.ResourceVersion)
	return nil
}

// silence returns for how long this process has observed that a kubelet does not report. silent is the state now. The
// clock of the cluster, which sets the time of the condition, may be off by hours.
func (h *Hooks) silence(key string, silent bool) time.Duration {
	if !silent {
		h.Silent.Clear(key)
		return 0
	}
	return h.clock.Now().Sub(h.Silent.Since(key))
}

// SilenceKey identifies the silence of the kubelet of a Machine in Hooks.Silent.
func SilenceKey(m *clusterv1.Machine) string { return reconcile.Key("silence", m) }
