package claims

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// MatchesElsewhere finds Agents that run on the Machine's host but booted the image of another InfraEnv of the
// namespace, sorted by name. As long as the host is not identified, Agents that are being deleted are former: they
// remain from the host's former Machine. It reads all Agents of the namespace. Only hosts that are not approved
// yet need the list, and an index by MAC address would grow with all Agents of the hub.
func (c *Checker) MatchesElsewhere(ctx context.Context, s *scope.Scope) (elsewhere, former []*aiv1beta1.Agent, err error) {
	if s.Host == nil || s.ApprovedAgent() != nil {
		c.addresses.End(s.Key())
		return nil, nil, nil
	}
	wanted := metal3.IdentityOf(s.Host)
	c.addresses.Begin(s.Key(), wanted.MACs...)
	agents := &aiv1beta1.AgentList{}
	if err := c.client.List(ctx, agents, client.InNamespace(s.Config.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("cannot look for Agents by MAC address: %w", err)
	}
	for i := range agents.Items {
		agent := &agents.Items[i]
		if name := facts.InfraEnvOf(agent); name == s.Machine.Name || s.OwnInfraEnv(name) || !wanted.SharesMAC(metal3.AgentIdentity(agent)) ||
			s.Mismatch(agent) != "" {
			continue
		}
		if agent.DeletionTimestamp.IsZero() {
			elsewhere = append(elsewhere, agent.DeepCopy())
		} else if s.Config.Status.AgentRef == nil {
			former = append(former, agent.DeepCopy())
		}
	}
	slices.SortFunc(elsewhere, byName)
	slices.SortFunc(former, byName)
	return elsewhere, former, nil
}

func byName(a, b *aiv1beta1.Agent) int { return strings.Compare(a.Name, b.Name) }
