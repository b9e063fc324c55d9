package machines

import (
	"cmp"
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

// ConditionWriter writes conditions of Machines.
type ConditionWriter struct {
	client client.Client
	gate   *etcdgate.Gate
	writer *writer.Writer
	clock  clock.PassiveClock
	// Started is when this process began to observe.
	Started time.Time
}

// NewConditionWriter returns a ConditionWriter of a process that starts now.
func NewConditionWriter(c client.Client, gate *etcdgate.Gate, w *writer.Writer, clk clock.PassiveClock) *ConditionWriter {
	return &ConditionWriter{client: c, gate: gate, writer: w, clock: clk, Started: clk.Now()}
}

// MarkUpToDate writes the condition UpToDate of the Machines, which Cluster API expects of a control plane
// provider.
func (w *ConditionWriter) MarkUpToDate(ctx context.Context, s *scope.Scope) (bool, error) {
	for i, m := range s.Found.Machines {
		wanted := upToDateCondition(s.Facts, m)
		if err := w.set(ctx, s, i, wanted, writer.FieldOwner); err != nil {
			return false, err
		}
	}
	return true, nil
}

// upToDateCondition returns the condition UpToDate of a Machine. It is true if the Machine has the version of its kubelet,
// and this is the Kubernetes version that the cluster should have. OpenShift upgrades its hosts in place, and its
// operators own all other configuration of the hosts. A Machine is never replaced for either.
func upToDateCondition(f *facts.Facts, m *clusterv1.Machine) metav1.Condition {
	c := metav1.Condition{
		Type:               clusterv1.MachineUpToDateCondition,
		Status:             metav1.ConditionTrue,
		Reason:             clusterv1.MachineUpToDateReason,
		ObservedGeneration: m.Generation,
	}
	// The version in the spec follows that of the kubelet, and the cache shows it later.
	version, required := cmp.Or(versioning.MachineVersion(f, m), m.Spec.Version), versioning.RequiredKubernetes(f)
	if required != "" && !versions.SameKubernetes(version, required) {
		c.Status, c.Reason = metav1.ConditionFalse, clusterv1.MachineNotUpToDateReason
		c.Message = fmt.Sprintf("* Version %s, %s required", version, required)
	}
	return c
}

// set writes a condition of one of the Machines. It does not write a condition that is unchanged, or that was
// written a moment ago and has not reached the cache yet.
func (w *ConditionWriter) set(ctx context.Context, s *scope.Scope, i int, wanted metav1.Condition, owner client.FieldOwner) error {
	m := s.Found.Machines[i]
	wanted.Message = bound.Message(wanted.Message)
	observed := conditions.Get(m, wanted.Type)
	if observed != nil && observed.Status == wanted.Status && observed.Reason == wanted.Reason && observed.Message == wanted.Message {
		return nil
	}
	wanted.LastTransitionTime = metav1.NewTime(w.clock.Now())
	if observed != nil && observed.Status == wanted.Status && !observed.LastTransitionTime.IsZero() {
		wanted.LastTransitionTime = observed.LastTransitionTime // a new message must not restart the timeout of a MachineHealthCheck
	}
	key := reconcile.Key(wanted.Type, m)
	if m.ResourceVersion == "" {
		s.Again.In(reconcile.CacheLag)
	} else if left := w.writer.Recent.Pending(key, m.ResourceVersion); left > 0 {
		s.Again.In(left)
	} else if err := w.apply(ctx, m, wanted, owner); err != nil {
		return err
	} else {
		w.writer.Recent.Record(key, m.ResourceVersion)
	}
	counted := m.DeepCopy()
	conditions.Set(counted, wanted)
	s.Found.Machines[i] = counted
	return nil
}

// apply writes one condition of a Machine. It uses server-side apply because the other conditions have other
// writers: a merge patch would write the whole list. An owner states one condition: the API server removes
// any other that it stated before.
func (w *ConditionWriter) apply(ctx context.Context, m *clusterv1.Machine, c metav1.Condition, owner client.FieldOwner) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name, "uid": string(m.UID)},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"observedGeneration": c.ObservedGeneration,
			"lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339),
		}}},
	}}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	err := w.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write condition %s of Machine %s: %w", c.Type, m.Name, err)
	}
	return nil
}
