package machines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/decision"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/remediation"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/tasks"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Remediator replaces the Machines that a MachineHealthCheck finds unhealthy.
type Remediator struct {
	client     client.Client
	live       client.Reader
	gate       *etcdgate.Gate
	conditions *ConditionWriter
	writer     *writer.Writer
	clock      clock.PassiveClock
}

// NewRemediator returns a Remediator.
func NewRemediator(
	c client.Client, live client.Reader, gate *etcdgate.Gate, conditions *ConditionWriter, w *writer.Writer, clk clock.PassiveClock,
) *Remediator {
	return &Remediator{client: c, live: live, gate: gate, conditions: conditions, writer: w, clock: clk}
}

// remediationOwner owns the condition OwnerRemediated of Machines.
const remediationOwner = writer.FieldOwner + "-remediation"

// Remediate deletes an unhealthy Machine if a MachineHealthCheck requests it and the deletion does no harm.
// Its host leaves etcd, and another Machine is created, as after any deletion. A Machine that is not deleted
// yet gets a message.
func (r *Remediator) Remediate(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Cluster == nil || s.ClusterDeleting() {
		return true, nil
	}
	situation := remediation.Of(s.Facts, r.clock.Now(), s.Removal)
	if situation.Over() {
		after := s.Stored.DeepCopy()
		delete(after.Annotations, controlplanev1.RemediationInProgressAnnotation)
		return true, r.writer.PatchMetadata(ctx, s, after)
	}
	if err := r.reportHealthy(ctx, s); err != nil {
		return false, err
	}
	if len(situation.Machines) == 0 || remediated(s, r.writer.Recent) {
		return true, r.reportRemediation(ctx, s, remediation.Step{})
	}
	step := situation.Before()
	if step == nil {
		step = r.inspectAndDecide(ctx, s, situation)
	} else {
		r.gate.Done(s, tasks.Remediation)
	}
	if step == nil {
		return true, nil // the conditions keep the result of the last inspection
	}
	if step.After > 0 {
		s.Again.In(step.After)
	}
	if step.Delete {
		if err := r.replace(ctx, s, *step); err != nil {
			return false, err
		}
	}
	return true, r.reportRemediation(ctx, s, *step)
}

// remediated reports whether a Machine was deleted a moment ago, and the cache does not have it yet.
func remediated(s *scope.Scope, recent *reconcile.RecentWrites) bool {
	for _, m := range s.Machines {
		if left := recent.Pending(ReplacedKey(m), m.ResourceVersion); left > 0 && m.DeletionTimestamp.IsZero() {
			s.Again.In(left)
			return true
		}
	}
	return false
}

// ReplacedKey identifies the deletion of an unhealthy Machine in the memory of own writes.
func ReplacedKey(m *clusterv1.Machine) string { return reconcile.Key("replaced", m) }

// inspectAndDecide reads etcd and decides. It returns nil if etcd may not be read yet.
func (r *Remediator) inspectAndDecide(ctx context.Context, s *scope.Scope, situation *remediation.Situation) *remediation.Step {
	inspection := r.gate.Begin(s, tasks.Remediation)
	if inspection == nil {
		return nil
	}
	defer inspection.End()
	step, err := r.decide(ctx, s, situation)
	if step.Delete {
		return &step
	}
	inspection.Decided(ctx, decision.Blocker{Reason: step.Reason, Message: step.Message, Watched: !step.Unwatched}, step.Machine.Name, err)
	return &step
}

// decide returns the decision for the current state of etcd. The error is for the log: why the state is
// unknown.
func (r *Remediator) decide(ctx context.Context, s *scope.Scope, situation *remediation.Situation) (remediation.Step, error) {
	seen, err := r.gate.See(ctx, s)
	switch {
	case errors.Is(err, cluster.ErrNotConnected):
		return situation.Unread(
			"the cluster's API server does not answer, so the state of etcd is unknown; see the condition Available of the control plane", true,
		), nil
	case err != nil:
		return situation.Unread(etcd.Describe(err)+". The provider retries", false), err
	}
	return situation.Decide(seen), nil
}

// replace records that a Machine is being replaced, and then deletes it. If the deletion fails, the record
// leads to another attempt.
func (r *Remediator) replace(ctx context.Context, s *scope.Scope, step remediation.Step) error {
	record, err := json.Marshal(step.Record)
	if err != nil {
		return fmt.Errorf("cannot record the remediation of Machine %s: %w", step.Machine.Name, err)
	}
	after := s.Stored.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, controlplanev1.RemediationInProgressAnnotation, string(record))
	if err := r.writer.PatchMetadata(ctx, s, after); err != nil {
		return err
	}
	if err := kube.Delete(ctx, r.client, step.Machine); err != nil {
		return err
	}
	r.writer.Recent.Record(ReplacedKey(step.Machine), step.Machine.ResourceVersion)
	r.gate.Done(s, tasks.Remediation)
	unhealthy := conditions.GetMessage(step.Machine, clusterv1.MachineHealthCheckSucceededCondition)
	s.Found.Event(corev1.EventTypeWarning, "MachineRemediated",
		"Machine %s is unhealthy (%s): it is being deleted, and another Machine replaces it",
		step.Machine.Name,
		unhealthy,
	)
	return nil
}

// reportRemediation writes the condition OwnerRemediated of the Machines to remediate: of the first one, of
// the others, and of those that are being deleted. Without a decision it leaves the conditions unchanged.
func (r *Remediator) reportRemediation(ctx context.Context, s *scope.Scope, step remediation.Step) error {
	for i, m := range s.Found.Machines {
		condition := metav1.Condition{
			Type: clusterv1.MachineOwnerRemediatedCondition, Status: metav1.ConditionFalse, ObservedGeneration: m.Generation,
		}
		switch {
		case !s.ToBeRemediated(m):
			continue
		case !m.DeletionTimestamp.IsZero():
			condition.Reason, condition.Message = controlplanev1.MachineRemediationMachineDeletingReason, remediation.Deleting
		case step.Machine == nil:
			continue
		case step.Machine.Name == m.Name:
			condition.Reason, condition.Message = step.Reason, step.Message
		default:
			condition.Reason, condition.Message = controlplanev1.MachineRemediationDeferredReason,
				"Machine is not replaced yet: Machine "+step.Machine.Name+" is handled first"
		}
		if err := r.conditions.set(ctx, s, i, condition, remediationOwner); err != nil {
			return err
		}
	}
	return nil
}

// reportHealthy removes the condition OwnerRemediated from Machines that are healthy again. The
// MachineHealthCheck also wrote the condition, so that server-side apply cannot remove it.
func (r *Remediator) reportHealthy(ctx context.Context, s *scope.Scope) error {
	for i, m := range s.Found.Machines {
		if !m.DeletionTimestamp.IsZero() || !healthyAgain(m) {
			continue
		}
		key := reconcile.Key(clusterv1.MachineOwnerRemediatedCondition, m)
		if left := r.writer.Recent.Pending(key, m.ResourceVersion); left > 0 {
			s.Again.In(left)
			continue
		}
		if err := r.withdrawRemediation(ctx, m); err != nil {
			return err
		}
		r.writer.Recent.Record(key, m.ResourceVersion)
		counted := m.DeepCopy()
		conditions.Delete(counted, clusterv1.MachineOwnerRemediatedCondition)
		s.Found.Machines[i] = counted
	}
	return nil
}

// withdrawRemediation removes the condition from a Machine. It reads the live Machine, because a merge patch
// also writes the conditions of other controllers.
func (r *Remediator) withdrawRemediation(ctx context.Context, cached *clusterv1.Machine) error {
	m, err := kube.Read(ctx, r.live, client.ObjectKeyFromObject(cached), &clusterv1.Machine{})
	if err != nil || m == nil || m.UID != cached.UID || !healthyAgain(m) {
		return err
	}
	before := m.DeepCopy()
	conditions.Delete(m, clusterv1.MachineOwnerRemediatedCondition)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, m, patch, remediationOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove the condition %s from Machine %s: %w", clusterv1.MachineOwnerRemediatedCondition, m.Name, err)
	}
	return nil
}

// healthyAgain reports whether a Machine still has a request for remediation, but is healthy.
func healthyAgain(m *clusterv1.Machine) bool {
	return conditions.IsTrue(m, clusterv1.MachineHealthCheckSucceededCondition) &&
		conditions.IsFalse(m, clusterv1.MachineOwnerRemediatedCondition)
}
