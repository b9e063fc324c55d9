package identification

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// silentSince returns since when a host without Agent could have registered. That is the loss of its Agent, or the
// end of its provisioning; zero if neither is known.
func silentSince(s *scope.Scope, now time.Time) time.Time {
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
func (id *Identifier) lostAgent(ctx context.Context, s *scope.Scope) (message string, moved bool, err error) {
	ref := s.Config.Status.AgentRef
	if ref == nil {
		return "", false, nil
	}
	agent, err := kube.Read(ctx, id.client, types.NamespacedName{Namespace: s.Config.Namespace, Name: ref.Name}, &aiv1beta1.Agent{})
	switch {
	case err != nil:
		return "", false, err
	case agent == nil:
		return fmt.Sprintf("Agent %s of the host was deleted. If the installation of the host had begun, the host may be partly installed",
			ref.Name), false, nil
	case s.OwnInfraEnv(facts.InfraEnvOf(agent)) || s.Host == nil:
		return "", false, nil
	}
	other, err := id.hostRunning(ctx, s, agent)
	if err != nil {
		return "", false, err
	}
	return fmt.Sprintf("Agent %s of BareMetalHost %s/%s is now reported by %s, which booted the image of InfraEnv %s: two servers have the "+
		"same system UUID, and assisted-service treats them as one host. Give each server its own UUID in its "+
		"firmware", agent.Name, s.Host.Namespace, s.Host.Name, other, facts.InfraEnvOf(agent)), true, nil
}

// hostRunning returns the name of the BareMetalHost on which an Agent of another InfraEnv runs.
func (id *Identifier) hostRunning(ctx context.Context, s *scope.Scope, agent *aiv1beta1.Agent) (string, error) {
	hosts := &metal3.HostList{}
	if err := id.client.List(ctx, hosts, client.InNamespace(s.Host.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("cannot look for the BareMetalHost of Agent %s: %w", agent.Name, err)
	}
	for i := range hosts.Items {
		if host := &hosts.Items[i]; host.Name != s.Host.Name && metal3.IdentityOf(host).Mismatch(metal3.AgentIdentity(agent)) == "" {
			return fmt.Sprintf("BareMetalHost %s/%s", host.Namespace, host.Name), nil
		}
	}
	return "an unknown server", nil
}
