package controlplane

import (
	"context"
	"fmt"
	"maps"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/status"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// excludeGuards excludes guard Pods from the drains of control-plane Nodes. It runs after syncMachines, so that no Node
// is drained faster before its Machine has our hook. A foreign rule of the same name is reported and not changed.
func (r *Reconciler) excludeGuards(ctx context.Context, s *scope.Scope) (bool, error) {
	rule := desired.DrainRule(s.Facts)
	if rule == nil {
		return true, nil
	}
	observed, err := r.observeDrainRule(ctx, rule)
	if err != nil {
		return false, err
	}
	if observed != nil && !s.OwnsDrainRule(observed) {
		s.Found.Block(status.GuardExclusion, controlplanev1.DrainRuleNotOursReason, status.ForeignDrainRule(rule.Name))
		return true, nil
	}
	if err := r.writer.Apply(ctx, s, rule, observed); err != nil {
		return false, fmt.Errorf("cannot exclude guard Pods from drains: %w", err)
	}
	return true, nil
}

// observeDrainRule reads the rule; nil when it does not exist, or was written a moment ago. It is read past the cache
// before the first write, which is forced: that would overwrite a foreign rule that the cache does not have yet.
func (r *Reconciler) observeDrainRule(ctx context.Context, wanted *clusterv1.MachineDrainRule) (*clusterv1.MachineDrainRule, error) {
	key := client.ObjectKeyFromObject(wanted)
	cached, err := kube.Read(ctx, r.Client, key, &clusterv1.MachineDrainRule{})
	if err != nil || cached != nil || r.writer.Recent.Pending(writer.Key(wanted), "") > 0 {
		return cached, err
	}
	return kube.Read(ctx, r.Live, key, &clusterv1.MachineDrainRule{})
}

// excludeDrain keeps Cluster API from a drain that would never end, or must not begin, of a Machine that is being
// deleted. A Machine without our hook is never excluded: the drain may be all that keeps Cluster API from its host.
func (r *Reconciler) excludeDrain(ctx context.Context, s *scope.Scope, m *clusterv1.Machine, silence time.Duration) error {
	if !removal.Holds(m) {
		return nil
	}
	if left := r.writer.Recent.Pending(hookKey(m), m.ResourceVersion); left > 0 {
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
	if err := kube.PatchMetadata(ctx, r.Client, m, after, writer.FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot exclude Machine %s from drains: %w", m.Name, err)
	}
	r.writer.Recent.Record(hookKey(m), m.ResourceVersion)
	return nil
}

// silence returns for how long this process has observed that a kubelet does not report. silent is the state now. The
// clock of the cluster, which sets the time of the condition, may be off by hours.
func (r *Reconciler) silence(key string, silent bool) time.Duration {
	if !silent {
		r.silent.Clear(key)
		return 0
	}
	return r.Clock.Now().Sub(r.silent.Since(key))
}

func silenceKey(m *clusterv1.Machine) string { return reconcile.Key("silence", m) }
