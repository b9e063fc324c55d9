package hostconfig

import (
	"context"
	"fmt"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// silenceLimit is how long a running host may fail to contact assisted-service before a person has to inspect the
// host. Firmware and a live ISO over slow virtual media take up to 20 minutes.
const silenceLimit = 30 * time.Minute

// silent turns the wait that was just recorded into a problem if the wait exceeds silenceLimit. A wait with an
// unknown beginning stays a wait. A wait that was reported as a problem stays a problem: only the process
// remembers the beginning of some waits.
func (r *Reconciler) silent(s *scope, since time.Time) (bool, error) {
	c := &s.conditions[len(s.conditions)-1]
	recorded := s.Recorded(c.Type)
	reported := recorded != nil && recorded.Reason == bootstrapv1.HostNotRespondingReason
	if since.IsZero() && !reported {
		return false, nil
	}
	if left := silenceLimit - r.Clock.Now().Sub(since); left > 0 && !reported {
		s.again.In(left)
		return false, nil
	}
	c.Reason = bootstrapv1.HostNotRespondingReason
	cause := fmt.Sprintf("; the host has not contacted assisted-service for more than %d minutes%s. Check its power and its console: boot device, network, DNS, proxy, certificates", int(silenceLimit.Minutes()), s.hostState())
	c.Message = bound.FitBefore(c.Message, cause) + cause
	if !reported {
		s.queueEvent(corev1.EventTypeWarning, bootstrapv1.HostNotRespondingReason, "%s", c.Message)
	}
	return false, nil
}

// hostState describes the state of the host that the Bare Metal Operator reports; empty without a BareMetalHost.
func (s *scope) hostState() string {
	if s.Host == nil {
		return ""
	}
	power := "powered off"
	if s.Host.Status.PoweredOn {
		power = "powered on"
	}
	return fmt.Sprintf(" (BareMetalHost %s/%s is %s and %s)", s.Host.Namespace, s.Host.Name, metal3.StateOf(s.Host), power)
}

// disconnected applies [Reconciler.silent] to a host that assisted-service has lost contact with.
func (r *Reconciler) disconnected(s *scope) (bool, error) {
	connected := assisted.AgentCondition(s.agent, aiv1beta1.ConnectedCondition)
	if connected.Status != corev1.ConditionFalse {
		return false, nil
	}
	return r.silent(s, connected.LastTransitionTime.Time)
}

// silentSince returns since when a host without Agent could have registered. That is the loss of its Agent, or the
// end of its provisioning; zero if neither is known.
func (s *scope) silentSince(now time.Time) time.Time {
	recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition)
	switch {
	case s.Config.Status.AgentRef != nil && recorded != nil && recorded.Status == metav1.ConditionFalse:
		return recorded.LastTransitionTime.Time // the condition was True while the Agent existed
	case s.Config.Status.AgentRef != nil:
		return now // the loss is about to be reported
	case s.Host == nil || s.Host.Status.Provisioning.State != metal3.StateProvisioned:
		return time.Time{}
	}
	provisioned, err := time.Parse(time.RFC3339, s.Host.Status.History.Provision.End)
	if err != nil {
		return time.Time{}
	}
	return provisioned
}

// lostAgent describes what happened to the Agent that was recorded as the Machine's and that its InfraEnv no
// longer has. moved reports that another server registered as the same Agent, which only happens if two servers
// have one system UUID.
func (r *Reconciler) lostAgent(ctx context.Context, s *scope) (message string, moved bool, err error) {
	ref := s.Config.Status.AgentRef
	if ref == nil {
		return "", false, nil
	}
	agent, err := kube.Read(ctx, r.Client, types.NamespacedName{Namespace: s.Config.Namespace, Name: ref.Name}, &aiv1beta1.Agent{})
	switch {
	case err != nil:
		return "", false, err
	case agent == nil:
		return fmt.Sprintf("Agent %s of the host was deleted. If the installation of the host had begun, the host may be installed in part", ref.Name), false, nil
	case s.OwnInfraEnv(facts.InfraEnvOf(agent)) || s.Host == nil:
		return "", false, nil
	}
	other, err := r.hostRunning(ctx, s, agent)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("Agent %s of BareMetalHost %s/%s is now reported by %s, which booted the image of InfraEnv %s: two servers have the same system UUID, and assisted-service takes them for one host. "+
		"Give each server its own UUID in its firmware", agent.Name, s.Host.Namespace, s.Host.Name, other, facts.InfraEnvOf(agent)), true, nil
}

// hostRunning returns the name of the BareMetalHost on which an Agent of another InfraEnv runs.
func (r *Reconciler) hostRunning(ctx context.Context, s *scope, agent *aiv1beta1.Agent) (string, error) {
	hosts := &metal3.HostList{}
	if err := r.Client.List(ctx, hosts, client.InNamespace(s.Host.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("cannot look for the BareMetalHost of Agent %s: %w", agent.Name, err)
	}
	for i := range hosts.Items {
		if host := &hosts.Items[i]; host.Name != s.Host.Name && metal3.IdentityOf(host).Mismatch(metal3.AgentIdentity(agent)) == "" {
			return fmt.Sprintf("BareMetalHost %s/%s", host.Namespace, host.Name), nil
		}
	}
	return "an unknown server", nil
}
