package scope

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// Overdue attributes the blocker of a task that was just recorded to assisted-service if the wait exceeds
// [assisted.ResponseTimeout]. Only assisted-service can end the wait, and never takes that long.
func (s *Scope) Overdue(task string, now, since time.Time) (proceed bool) {
	if since.IsZero() {
		since = now
	}
	if left := assisted.ResponseTimeout - now.Sub(since); left > 0 {
		s.Again.In(left)
		return false
	}
	message := s.Blocked(task).Message + "; " + assisted.NotResponding("it", s.Config.Namespace, since)
	return s.Block(task, bootstrapv1.AssistedServiceNotRespondingReason, message)
}

// SilenceLimit is how long a running host may fail to contact assisted-service before a person has to inspect the
// host. Firmware and a live ISO over slow virtual media take up to 20 minutes.
const SilenceLimit = 30 * time.Minute

// Silent turns the blocker of a task that was just recorded into a problem if the wait exceeds SilenceLimit. A wait with
// an unknown beginning stays a wait. A wait that was reported as a problem stays a problem: only the process remembers
// the beginning of some waits.
func (s *Scope) Silent(task string, now, since time.Time) (proceed bool) {
	recorded := s.Recorded(task)
	reported := recorded != nil && recorded.Reason == bootstrapv1.HostNotRespondingReason
	if since.IsZero() && !reported {
		return false
	}
	if left := SilenceLimit - now.Sub(since); left > 0 && !reported {
		s.Again.In(left)
		return false
	}
	cause := fmt.Sprintf("; the host has not contacted assisted-service for more than %d minutes%s. Check its power and its console: boot "+
		"device, network, DNS, proxy, certificates", int(SilenceLimit.Minutes()), s.hostState())
	message := bound.FitBefore(s.Blocked(task).Message, cause) + cause
	return s.Block(task, bootstrapv1.HostNotRespondingReason, message)
}

// hostState describes the state of the host that the Bare Metal Operator reports; empty without a BareMetalHost.
func (s *Scope) hostState() string {
	if s.Host == nil {
		return ""
	}
	power := "powered off"
	if s.Host.Status.PoweredOn {
		power = "powered on"
	}
	return fmt.Sprintf(" (BareMetalHost %s/%s is %s and %s)", s.Host.Namespace, s.Host.Name, metal3.StateOf(s.Host), power)
}

// Disconnected applies [Scope.Silent] to a host that assisted-service has lost contact with.
func (s *Scope) Disconnected(task string, now time.Time) (proceed bool) {
	connected := assisted.AgentCondition(s.Agent, aiv1beta1.ConnectedCondition)
	if connected.Status != corev1.ConditionFalse {
		return false
	}
	return s.Silent(task, now, connected.LastTransitionTime.Time)
}

// DeletedAt returns when the deletion of an object began; zero if the object is not being deleted.
func DeletedAt(obj client.Object) time.Time {
	if at := obj.GetDeletionTimestamp(); at != nil {
		return at.Time
	}
	return time.Time{}
}
