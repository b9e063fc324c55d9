package hostconfig

import (
	"fmt"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// scope is one reconcile: the facts that were read before it, which no phase changes, and the findings of its
// phases.
type scope struct {
	*facts.Facts
	findings
}

// findings are the results of the phases, each for the later phases and for the report.
type findings struct {
	// stored is the config in the current state of the API server: finalizers are written before the report.
	stored *bootstrapv1.OpenshiftAssistedConfig
	// status is the status to report.
	status bootstrapv1.OpenshiftAssistedConfigStatus
	// infraEnv is the InfraEnv whose image the host boots, once it exists.
	infraEnv *assisted.InfraEnv
	// unchangeableField is a field of the InfraEnv that does not follow the spec, because its image was handed out;
	// empty if none.
	unchangeableField string
	// agent is the Agent of the Machine's host, once it is identified.
	agent *aiv1beta1.Agent
	// wanted is the desired spec of the Agent, once it is known. fencing is the data about its BMC.
	wanted  *aiv1beta1.AgentSpec
	fencing desired.Fencing
	// ownersRefused reports that the API server refused the owner references of a Secret of the config; empty if not.
	ownersRefused string

	conditions []metav1.Condition
	events     []notice
	// reactions are the delays of the actions that the status now reports. They count once the status is written.
	reactions []measure.Reaction
	again     reconcile.Requeue
}

// notice is an event for people who watch the host.
type notice struct {
	kind, reason, message string
}

// newScope returns a scope without findings.
func newScope(f *facts.Facts) *scope {
	return &scope{Facts: f, findings: findings{stored: f.Config.DeepCopy(), status: *f.Config.Status.DeepCopy()}}
}

// found returns a condition that a phase of this reconcile has set; nil if none has.
func (s *scope) found(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(s.conditions, conditionType)
}

// pass records that a stage is done.
func (s *scope) pass(conditionType, message string) {
	s.conditions = append(s.conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: passedReason(conditionType), Message: message})
}

// wait records the blocker or the problem of a stage, and stops the phases.
func (s *scope) wait(conditionType, reason, format string, args ...any) (bool, error) {
	s.conditions = append(s.conditions, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
	return false, nil
}

// overdue attributes the wait that was just recorded to assisted-service if the wait exceeds
// [assisted.ResponseTimeout]. Only assisted-service can end the wait, and never takes that long.
func (r *Reconciler) overdue(s *scope, since time.Time) (bool, error) {
	if since.IsZero() {
		since = r.Clock.Now()
	}
	if left := assisted.ResponseTimeout - r.Clock.Now().Sub(since); left > 0 {
		s.again.In(left)
		return false, nil
	}
	c := &s.conditions[len(s.conditions)-1]
	c.Reason = bootstrapv1.AssistedServiceNotRespondingReason
	c.Message += "; " + assisted.NotResponding("it", s.Config.Namespace, since)
	return false, nil
}

// queueEvent queues an event that is emitted once the status is written.
func (s *scope) queueEvent(kind, reason, format string, args ...any) {
	s.events = append(s.events, notice{kind, reason, fmt.Sprintf(format, args...)})
}

// waitDeleting records the blocker of the deletion, and stops the phases.
func (s *scope) waitDeleting(reason, format string, args ...any) (bool, error) {
	s.conditions = append(s.conditions, metav1.Condition{
		Type: bootstrapv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
	return false, nil
}
