// Package claims finds who else uses the server of a Machine: other BareMetalHosts, other configs and other Agents.
package claims

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Checker checks whether the server of a Machine is in use elsewhere.
type Checker struct {
	client client.Reader
	// servers records the keys of the server that a config waits for, of BareMetalHosts of any namespace. agents records
	// the Agents that another config recorded. addresses records the MAC addresses of Agents that booted the image of
	// another config.
	servers, agents, addresses *reconcile.Waiters
}

// New returns a Checker that reads by c.
func New(c client.Reader) *Checker {
	return &Checker{client: c, servers: reconcile.NewWaiters(), agents: reconcile.NewWaiters(), addresses: reconcile.NewWaiters()}
}

// Forget drops the records of a deleted config.
func (c *Checker) Forget(config types.NamespacedName) {
	c.servers.End(config)
	c.agents.End(config)
	c.addresses.End(config)
}

// WaitingForServer returns the configs that wait for the server of a host.
func (c *Checker) WaitingForServer(host *metal3.Host) []types.NamespacedName {
	return c.servers.Of("", metal3.ServerKeys(host)...)
}

// WaitingForAgent returns the configs that wait for an Agent with the MAC addresses of agent.
func (c *Checker) WaitingForAgent(agent *aiv1beta1.Agent) []types.NamespacedName {
	return c.addresses.Of(agent.Namespace, metal3.AgentIdentity(agent).MACs...)
}

// WaitingForConfig returns the configs that wait because a config recorded their Agent.
func (c *Checker) WaitingForConfig(config *bootstrapv1.OpenshiftAssistedConfig) []types.NamespacedName {
	return c.agents.Of(config.Namespace, config.Status.AgentRef.Name)
}

// Check blocks the binding and approval of the Agent that runs on the Machine's host while another object
// shows that its server is in use. The objects in the API decide, at each reconcile until the Agent is approved.
func (c *Checker) Check(ctx context.Context, s *scope.Scope, found desired.Identification, elsewhere []*aiv1beta1.Agent) (bool, error) {
	agent := found.Agent
	if agent != nil && facts.Bound(agent) && agent.Spec.Approved {
		c.agents.End(s.Key())
		return true, nil
	}
	var recorded []string
	if agent != nil {
		agents := append([]*aiv1beta1.Agent{agent}, found.Others...)
		var err error
		if recorded, err = c.RecordedBy(ctx, s, agents); err != nil {
			return false, err
		}
		if s.Host == nil {
			if elsewhere, err = c.sameServers(ctx, s, agent); err != nil {
				return false, err
			}
		}
	}
	for _, other := range found.Others {
		if s.BoundElsewhere(other) { // otherwise the Agent is the Machine's own, from a former registration
			elsewhere = append(elsewhere, other)
		}
	}
	message := desired.ServerInUse(s.Facts, agent, elsewhere, recorded)
	if message == "" {
		return true, nil
	}
	return s.Block(bootstrapv1.HostIdentifiedCondition, bootstrapv1.ServerInUseReason, message), nil
}

// RecordedBy describes the other configs of the namespace that recorded an installation on the server of an Agent.
// If the server boots the image of another InfraEnv, assisted-service moves the Agent there and empties its spec.
// Only the config that installed the server then still records the installation.
func (c *Checker) RecordedBy(ctx context.Context, s *scope.Scope, agents []*aiv1beta1.Agent) ([]string, error) {
	names := make([]string, 0, len(agents))
	for _, agent := range agents {
		names = append(names, agent.Name)
	}
	c.agents.Begin(s.Key(), names...)
	var claims []string
	for _, name := range names {
		found, err := c.RecordedOn(ctx, s, name)
		if err != nil {
			return nil, err
		}
		claims = append(claims, found...)
	}
	slices.Sort(claims)
	return claims, nil
}

// RecordedOn describes the other configs of the namespace that recorded an installation on the server of one Agent.
func (c *Checker) RecordedOn(ctx context.Context, s *scope.Scope, agent string) ([]string, error) {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := c.client.List(ctx, list, client.InNamespace(s.Config.Namespace), client.MatchingFields{informer.ConfigByAgent: agent},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot look for configs that recorded Agent %s: %w", agent, err)
	}
	var claims []string
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == s.Config.Name {
			continue
		}
		claim, err := c.claimOf(ctx, s, other)
		if err != nil {
			return nil, err
		}
		if claim != "" {
			claims = append(claims, fmt.Sprintf("OpenshiftAssistedConfig %s, which %s, recorded Agent %s", other.Name, claim, agent))
		}
	}
	return claims, nil
}

// claimOf returns why the server that a config recorded is in use; empty if the server is not in use. Cluster API
// deletes the infrastructure machine of a Machine before its config. If both are deleted or being deleted, the
// server was released. A claim does not block the deletion of the whole Cluster: Cluster API deletes the control
// plane only after the workers are deleted.
func (c *Checker) claimOf(ctx context.Context, s *scope.Scope, config *bootstrapv1.OpenshiftAssistedConfig) (string, error) {
	f := &facts.Facts{Config: config}
	if err := GatherMachine(ctx, c.client, f); err != nil {
		return "", err
	}
	if s.IsDeletedTogether(f) {
		return "", nil
	}
	claim := facts.ClaimsAgent(config, f.Machine)
	if claim == "" || config.DeletionTimestamp.IsZero() {
		return claim, nil
	}
	if f.Machine == nil {
		return "", nil
	}
	exists, err := c.infraMachineExists(ctx, f.Machine)
	if err != nil || exists {
		return claim, err
	}
	return "", nil
}

// infraMachineExists reports whether the infrastructure machine of a Machine exists. An infrastructure machine of
// a kind that the managers may not read counts as existing.
func (c *Checker) infraMachineExists(ctx context.Context, machine *clusterv1.Machine) (bool, error) {
	ref := machine.Spec.InfrastructureRef
	if !kube.Readable(ref) {
		return true, nil
	}
	infraMachine, err := kube.External(ctx, c.client, ref, machine.Namespace)
	if err != nil || infraMachine == nil {
		return false, err
	}
	exists, err := kube.Read(ctx, c.client, types.NamespacedName{Namespace: machine.Namespace, Name: ref.Name}, infraMachine)
	return exists != nil, err
}

// sameServers finds the Agents of other InfraEnvs of the namespace that run on the server of an Agent, sorted by
// name. It serves hosts that no BareMetalHost identifies.
func (c *Checker) sameServers(ctx context.Context, s *scope.Scope, agent *aiv1beta1.Agent) ([]*aiv1beta1.Agent, error) {
	own := metal3.AgentIdentity(agent)
	c.addresses.Begin(s.Key(), own.MACs...)
	list := &aiv1beta1.AgentList{}
	if err := c.client.List(ctx, list, client.InNamespace(s.Config.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot look for Agents of the same server: %w", err)
	}
	var same []*aiv1beta1.Agent
	for i := range list.Items {
		if other := &list.Items[i]; other.Name != agent.Name && facts.InUse(other) != "" && own.SameServer(metal3.AgentIdentity(other)) {
			same = append(same, other)
		}
	}
	slices.SortFunc(same, byName)
	return same, nil
}
