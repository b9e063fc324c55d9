package controlplane

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// markUpToDate writes the condition UpToDate of the Machines, which Cluster API expects of a control plane provider.
func (r *Reconciler) markUpToDate(ctx context.Context, s *scope) (bool, error) {
	version := s.found.MachineVersion(s.Facts)
	for i, m := range s.found.Machines {
		wanted := upToDateCondition(m, version)
		observed := conditions.Get(m, wanted.Type)
		if observed != nil && observed.Status == wanted.Status && observed.Reason == wanted.Reason && observed.Message == wanted.Message {
			continue
		}
		key := reconcile.Key("up-to-date", m)
		if m.ResourceVersion == "" {
			s.again.In(reconcile.CacheLag)
		} else if left := r.recent.Unseen(key, m.ResourceVersion); left > 0 {
			s.again.In(left)
		} else if err := r.applyMachineCondition(ctx, m, wanted); err != nil {
			return false, err
		} else {
			r.recent.Wrote(key, m.ResourceVersion)
		}
		counted := m.DeepCopy()
		conditions.Set(counted, wanted)
		s.found.Machines[i] = counted
	}
	return true, nil
}

// upToDateCondition tells whether a Machine is what it is to be. That the spec asks for another version than the cluster runs is no matter of a Machine, and told
// by the control plane's conditions: nothing is rolled out for it. What is configured in the host belongs to OpenShift's own
// operators; a Machine is never replaced for it.
func upToDateCondition(m *clusterv1.Machine, version string) metav1.Condition {
	c := metav1.Condition{Type: clusterv1.MachineUpToDateCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineUpToDateReason, ObservedGeneration: m.Generation}
	if version != "" && m.Spec.Version != version {
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1.MachineNotUpToDateReason
		c.Message = fmt.Sprintf("* Version %s, %s required", m.Spec.Version, version)
	}
	return c
}

// applyMachineCondition writes one condition of a Machine. The other conditions have other writers, hence server-side apply: a merge patch
// would write the list as a whole.
func (r *Reconciler) applyMachineCondition(ctx context.Context, m *clusterv1.Machine, c metav1.Condition) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name, "uid": string(m.UID)},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"observedGeneration": c.ObservedGeneration,
			"lastTransitionTime": r.now().UTC().Format(time.RFC3339),
		}}},
	}}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	err := r.Client.Status().Patch(ctx, u, client.Apply, FieldOwner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write condition %s of Machine %s: %w", c.Type, m.Name, err)
	}
	return nil
}
