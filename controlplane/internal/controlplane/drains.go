package controlplane

import (
	"context"
	"fmt"
	"maps"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// excludeGuards excludes guard Pods from the drains of control-plane Nodes, before any is drained.
func (r *Reconciler) excludeGuards(ctx context.Context, s *scope) (bool, error) {
	rule := desired.DrainRule(s.Facts)
	if rule == nil {
		return true, nil
	}
	observed, err := kube.Read(ctx, r.Client, client.ObjectKeyFromObject(rule), &clusterv1.MachineDrainRule{})
	if err != nil {
		return false, err
	}
	if err := r.apply(ctx, s, rule, observed); err != nil {
		return false, fmt.Errorf("cannot exclude guard Pods from drains: %w", err)
	}
	return true, nil
}

// excludeDrain keeps Cluster API from a drain that would never end, or must not begin, of a Machine that is being deleted.
func (r *Reconciler) excludeDrain(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	if left := r.recent.Unseen(hookKey(m), m.ResourceVersion); left > 0 {
		s.again.In(left)
		return nil
	}
	after := m.DeepCopy()
	desired.SetDrainExclusion(s.Facts, after)
	if maps.Equal(m.Annotations, after.Annotations) {
		return nil
	}
	if err := kube.PatchMetadata(ctx, r.Client, m, after, FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot exclude Machine %s from drains: %w", m.Name, err)
	}
	r.recent.Wrote(hookKey(m), m.ResourceVersion)
	return nil
}
