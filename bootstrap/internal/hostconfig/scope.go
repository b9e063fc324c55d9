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

// scope is one reconcile: what was read before it, which no phase changes, and what its phases find out.
type scope struct {
	*facts.Facts
	findings
}

// findings are what the phases find out, each for those after it and for the report.
type findings struct {
	// stored is the config as the API server has it now: finalizers are written before the report.
	stored *bootstrapv1.OpenshiftAssistedConfig
	// status is the one to report.
	status bootstrapv1.OpenshiftAssistedConfigStatus
	// infraEnv is the one whose image the host boots, once it exists.
	infraEnv *assisted.InfraEnv
	// unchangeableField is a field of the InfraEnv that does not follow the spec, as its image was handed out; empty: there is none.
	unchangeableField string
	// agent is the one of the Machine's host, once it is identified.
	agent *aiv1beta1.Agent
	// wanted is what the Agent is to be told, once it is known; fencing is the part of it that is about its BMC.
	wanted  *aiv1beta1.AgentSpec
	fencing desired.Fencing
	// ownersRefused reports that the API server refused the owner references of a Secret of the config; empty when it did not.
	ownersRefused string

	conditions []metav1.Condition
	events     []notice
	// reactions are how long it took until what the status tells now was done; they count when it is written.
	reactions []measure.Reaction
	again     reconcile.Requeue
}

// notice is an event for people who watch the host.
type notice struct {
	kind, reason, message string
}

// newScope is a reconcile that has found out nothing.
func newScope(f *facts.Facts) *scope {
	return &scope{Facts: f, findings: findings{stored: f.Config.DeepCopy(), status: *f.Config.Status.DeepCopy()}}
}

// found returns a condition as it was found in this reconcile; nil when it was not.
func (s *scope) found(conditionType string) *metav1.Condition {
	return meta.FindStatusCondition(s.conditions, conditionType)
}

// pass records that a stage is done.
func (s *scope) pass(conditionType, message string) {
	s.conditions = append(s.conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: passedReason(conditionType), Message: message})
}

// wait records what a stage waits for or what is wrong, and stops the phases.
func (s *scope) wait(conditionType, reason, format string, args ...any) (bool, error) {
	s.conditions = append(s.conditions, metav1.Condition{
		Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
	return false, nil
}

// overdue puts the wait that was just recorded down to assisted-service, which alone can end it, when it lasts longer than that ever takes.
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

// queueEvent emits an event once the status is written.
func (s *scope) queueEvent(kind, reason, format string, args ...any) {
	s.events = append(s.events, notice{kind, reason, fmt.Sprintf(format, args...)})
}

// waitDeleting records what the deletion waits for, and stops the phases.
func (s *scope) waitDeleting(reason, format string, args ...any) (bool, error) {
	s.conditions = append(s.conditions, metav1.Condition{
		Type: bootstrapv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
	return false, nil
}
