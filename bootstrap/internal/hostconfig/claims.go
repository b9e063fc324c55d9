package hostconfig

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/bootmode"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// gatherClaimants finds the BareMetalHosts, in all watched namespaces, that show that a server is in use. The
// server is that of the Machine's host, or of a host that CAPM3 may give to the Machine.
func (r *Reconciler) gatherClaimants(ctx context.Context, f *facts.Facts) error {
	var hosts []*metal3.Host
	switch {
	case f.Deleting() || f.IsFinished() || f.ApprovedAgent() != nil:
	case f.Host != nil || f.NeedsHost() && !f.DataHandedOut():
		hosts = preflight.Candidates(f)
	}
	if f.Host != nil && len(hosts) > 0 {
		r.serverWaiters.Begin(client.ObjectKeyFromObject(f.Config), metal3.ServerKeys(f.Host)...)
	} else {
		r.serverWaiters.End(client.ObjectKeyFromObject(f.Config))
	}
	if err := r.claimants(ctx, f, hosts); err != nil || f.Host != nil || len(f.Claimants) == 0 {
		return err
	}
	// A pool may have thousands of hosts, so that only changes of the claimed hosts wake this config. A claim may
	// have ended before the wait was recorded, so that the claimants are read once more.
	hosts = slices.DeleteFunc(hosts, func(host *metal3.Host) bool { return len(f.Claimants[host.Name]) == 0 })
	var keys []string
	for _, host := range hosts {
		keys = append(keys, metal3.ServerKeys(host)...)
	}
	r.serverWaiters.Begin(client.ObjectKeyFromObject(f.Config), keys...)
	return r.claimants(ctx, f, hosts)
}

// claimants finds the claimants of the hosts, sorted by namespace and name.
func (r *Reconciler) claimants(ctx context.Context, f *facts.Facts, hosts []*metal3.Host) error {
	f.Claimants = map[string][]*metal3.Host{}
	for _, host := range hosts {
		for _, key := range metal3.ServerKeys(host) {
			list := &metal3.HostList{}
			if err := r.Client.List(ctx, list, client.MatchingFields{informer.HostByServer: key}, client.UnsafeDisableDeepCopy); err != nil {
				return fmt.Errorf("cannot look for BareMetalHosts of the same server: %w", err)
			}
			for i := range list.Items {
				if other := &list.Items[i]; other.Name != host.Name || other.Namespace != host.Namespace {
					f.Claimants[host.Name] = append(f.Claimants[host.Name], other)
				}
			}
		}
		slices.SortFunc(f.Claimants[host.Name], func(a, b *metal3.Host) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		f.Claimants[host.Name] = slices.CompactFunc(f.Claimants[host.Name], func(a, b *metal3.Host) bool { return a.Namespace == b.Namespace && a.Name == b.Name })
	}
	return nil
}

// withhold blocks the bootstrap data, because the infrastructure provider chooses a host once the data exist. The
// block lasts while the provider could start a server in use, or write to the disk of a server that is not the
// host's. The block also lasts while the hosts that the provider could choose are unknown.
func withhold(s *scope.Scope, mode bootmode.Mode) (bool, error) {
	reason, message := preflight.Withheld(s.Facts, mode.Name() == bootstrapv1.BootModeDiskImage)
	const stage = bootstrapv1.DataSecretAvailableCondition
	switch {
	case reason == "":
		return true, nil
	case s.HasRecorded(stage, message):
	case reason == bootstrapv1.ServerInUseReason:
		s.QueueEvent(corev1.EventTypeWarning, bootstrapv1.ServerInUseReason, "%s", message)
	case reason == bootstrapv1.BMCOfAnotherServerReason:
		s.QueueEvent(corev1.EventTypeWarning, bootstrapv1.BMCOfAnotherServerReason, "%s", message)
	}
	return s.Wait(stage, reason, "%s", message)
}

// unclaimed blocks the binding and approval of the Agent that runs on the Machine's host while another object
// shows that its server is in use. The objects in the API decide, at each reconcile until the Agent is approved.
func (r *Reconciler) unclaimed(ctx context.Context, s *scope.Scope, found desired.Identification, elsewhere []*aiv1beta1.Agent) (bool, error) {
	agent := found.Agent
	if agent != nil && facts.Bound(agent) && agent.Spec.Approved {
		r.agentWaiters.End(s.Key())
		return true, nil
	}
	var recorded []string
	if agent != nil {
		agents := append([]*aiv1beta1.Agent{agent}, found.Others...)
		var err error
		if recorded, err = r.recordedBy(ctx, s, agents); err != nil {
			return false, err
		}
		if s.Host == nil {
			if elsewhere, err = r.sameServers(ctx, s, agent); err != nil {
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
	if !s.HasRecorded(bootstrapv1.HostIdentifiedCondition, message) {
		s.QueueEvent(corev1.EventTypeWarning, bootstrapv1.ServerInUseReason, "%s", message)
	}
	return s.Wait(bootstrapv1.HostIdentifiedCondition, bootstrapv1.ServerInUseReason, "%s", message)
}

// recordedBy describes the other configs of the namespace that recorded an installation on the server of an Agent.
// If the server boots the image of another InfraEnv, assisted-service moves the Agent there and empties its spec.
// Only the config that installed the server then still records the installation.
func (r *Reconciler) recordedBy(ctx context.Context, s *scope.Scope, agents []*aiv1beta1.Agent) ([]string, error) {
	names := make([]string, 0, len(agents))
	for _, agent := range agents {
		names = append(names, agent.Name)
	}
	r.agentWaiters.Begin(s.Key(), names...)
	var claims []string
	for _, name := range names {
		found, err := r.claimsOn(ctx, s, name)
		if err != nil {
			return nil, err
		}
		claims = append(claims, found...)
	}
	slices.Sort(claims)
	return claims, nil
}

// claimsOn describes the other configs of the namespace that recorded an installation on the server of one Agent.
func (r *Reconciler) claimsOn(ctx context.Context, s *scope.Scope, agent string) ([]string, error) {
	list := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Config.Namespace), client.MatchingFields{informer.ConfigByAgent: agent}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot look for configs that recorded Agent %s: %w", agent, err)
	}
	var claims []string
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name == s.Config.Name {
			continue
		}
		claim, err := r.claimOf(ctx, s, other)
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
func (r *Reconciler) claimOf(ctx context.Context, s *scope.Scope, config *bootstrapv1.OpenshiftAssistedConfig) (string, error) {
	f := &facts.Facts{Config: config}
	if err := r.gatherMachine(ctx, f); err != nil {
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
	there, err := r.infraMachineIsThere(ctx, f.Machine)
	if err != nil || there {
		return claim, err
	}
	return "", nil
}

// infraMachineIsThere reports whether the infrastructure machine of a Machine exists. An infrastructure machine of
// a kind that the managers may not read counts as existing.
func (r *Reconciler) infraMachineIsThere(ctx context.Context, machine *clusterv1.Machine) (bool, error) {
	ref := machine.Spec.InfrastructureRef
	if !kube.Readable(ref) {
		return true, nil
	}
	infraMachine, err := kube.External(ctx, r.Client, ref, machine.Namespace)
	if err != nil || infraMachine == nil {
		return false, err
	}
	there, err := kube.Read(ctx, r.Client, types.NamespacedName{Namespace: machine.Namespace, Name: ref.Name}, infraMachine)
	return there != nil, err
}

// sameServers finds the Agents of other InfraEnvs of the namespace that run on the server of an Agent, sorted by
// name. It serves hosts that no BareMetalHost identifies.
func (r *Reconciler) sameServers(ctx context.Context, s *scope.Scope, agent *aiv1beta1.Agent) ([]*aiv1beta1.Agent, error) {
	own := metal3.AgentIdentity(agent)
	r.addressWaiters.Begin(s.Key(), own.MACs...)
	list := &aiv1beta1.AgentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Config.Namespace), client.UnsafeDisableDeepCopy); err != nil {
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

// ofOtherConfig maps a config to the configs that wait because this config recorded their Agent.
func (r *Reconciler) ofOtherConfig(_ context.Context, o client.Object) []ctrl.Request {
	config, ok := o.(*bootstrapv1.OpenshiftAssistedConfig)
	if !ok || config.Status.AgentRef == nil {
		return nil
	}
	var requests []ctrl.Request
	for _, waiting := range r.agentWaiters.Of(config.Namespace, config.Status.AgentRef.Name) {
		if waiting != client.ObjectKeyFromObject(config) {
			requests = append(requests, ctrl.Request{NamespacedName: waiting})
		}
	}
	return requests
}
