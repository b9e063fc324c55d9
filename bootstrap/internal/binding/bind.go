// Package binding binds the Agent of an identified host to its cluster, approves it, and observes its installation.
package binding

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/joining"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/prerequisites"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Binder writes Agents.
type Binder struct {
	client        client.Reader
	live          client.Reader
	writer        *writer.Writer
	prerequisites *prerequisites.Checker
	clock         clock.PassiveClock
	// names records the names of Nodes that another Machine has.
	names *reconcile.Waiters
	// unbound records since when an Agent is bound that assisted-service has not added to the cluster.
	unbound *reconcile.StartTimes[types.NamespacedName]
	// bound records since when assisted-service has a host in the cluster that has not registered with the cluster.
	bound *reconcile.StartTimes[types.NamespacedName]
}

// New returns a Binder.
func New(w *writer.Writer, p *prerequisites.Checker, clk clock.PassiveClock) *Binder {
	return &Binder{
		client: w.Client, live: w.Live, writer: w, prerequisites: p, clock: clk, names: reconcile.NewWaiters(),
		unbound: reconcile.NewStartTimes[types.NamespacedName](clk), bound: reconcile.NewStartTimes[types.NamespacedName](clk),
	}
}

// Forget drops the records of a deleted config.
func (b *Binder) Forget(config types.NamespacedName) {
	b.names.End(config)
	b.unbound.Clear(config)
	b.bound.Clear(config)
}

// WaitingForName returns the configs that wait until a Machine releases the name of its Node.
func (b *Binder) WaitingForName(namespace, name string) []types.NamespacedName {
	return b.names.Of(namespace, name)
}

// Bind writes all settings of the Agent, including its cluster, once the cluster accepts hosts.
func (b *Binder) Bind(ctx context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.HostBoundCondition
	agent := s.Agent
	if ref := agent.Spec.ClusterDeploymentName; ref != nil && (ref.Name != s.Deployment.Name || ref.Namespace != s.Deployment.Namespace) {
		return s.Blockf(stage, bootstrapv1.HostRefusedReason,
			"%s belongs to %s. If that cluster uses the server, neither unbind the Agent nor delete this Machine: both would wipe the "+
				"server. "+
				"To release the server from its BareMetalHost, %s; then delete the Machine. Only if the server is not installed there, clear "+
				"spec.clusterDeploymentName of the Agent",
			s.DescribeAgent(agent), s.ClusterOf(agent), desired.DetachFirst), nil
	}
	if facts.Bound(agent) && agent.Spec.Approved {
		b.bound.Clear(s.Key())
		s.Pass(stage, "")
		return true, nil
	}
	// Cluster API returns the host before it deletes the config, and would end an installation that begins now.
	if !s.Machine.DeletionTimestamp.IsZero() {
		return s.Blockf(stage, bootstrapv1.WaitingForMachineReason, "Machine %s is being deleted: %s is not installed for it",
			s.Machine.Name, s.DescribeHost(agent)), nil
	}
	// Cluster API deletes the Machines of a Cluster one after the other. A Machine that is not deleted yet must not
	// begin an installation.
	if s.ClusterDeleting() {
		return s.Blockf(stage, bootstrapv1.WaitingForMachineReason, "Cluster %s is being deleted: %s is not installed for it",
			s.Cluster.Name, s.DescribeHost(agent)), nil
	}
	if !assisted.HasInventory(agent) {
		return b.waitForRegistration(s)
	}
	var p *desired.UserError
	wanted, err := desired.AgentSpec(s.Facts, agent, func() ([]byte, error) { return b.metal3Metadata(ctx, s) })
	if errors.As(err, &p) {
		return s.Block(stage, p.Reason, p.Message), nil
	}
	if err != nil {
		return false, err
	}
	s.Wanted = wanted
	s.Wanted.FencingCredentialsSecretRef = s.Fencing.Secret
	return b.bind(ctx, s)
}

func (b *Binder) bind(ctx context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.HostBoundCondition
	agent := s.Agent
	if joining.Reregistered(s.Facts) {
		return s.Blockf(stage, bootstrapv1.ClusterReregisteredReason,
			"the cluster was installed already, but assisted-service has it in state %q, in which it may be installed again: "+
				"%s is neither bound nor approved; see the condition Installed of the control plane",
			s.Installation().State, s.DescribeHost(agent)), nil
	}
	if proceed, err := b.nodeNameFree(ctx, s); !proceed {
		return proceed, err
	}
	obstacle := joining.AcceptanceBlocker(s.Facts)
	synced := assisted.AgentCondition(agent, aiv1beta1.SpecSyncedCondition)
	unbound := facts.Unbound(agent)
	if !facts.Bound(agent) || !unbound {
		b.unbound.Clear(s.Key())
	}
	if !facts.Bound(agent) || unbound {
		b.bound.Clear(s.Key())
	}
	refusedByService := facts.Bound(agent) && unbound && synced.Status == corev1.ConditionFalse && synced.Reason == aiv1beta1.InputErrorReason
	switch {
	case obstacle != "" && (!facts.Bound(agent) || refusedByService):
		// Withdraw the binding: assisted-service does not retry automatically when the cluster accepts hosts.
		if refusedByService {
			if proceed, err := b.applyAgent(ctx, s, stage, false, false); !proceed {
				return proceed, err
			}
		}
		return s.Blockf(stage, bootstrapv1.ClusterNotAcceptingHostsReason,
			"%s; %s is bound when it accepts hosts (once it is installed and adds hosts)", obstacle, s.DescribeHost(agent)), nil
	case !facts.Bound(agent) && agent.Status.DebugInfo.State != aiv1beta1.HostStatusKnownUnbound:
		s.Block(stage, bootstrapv1.WaitingForHostValidationReason, validationMessage(s, b.clock.Now()))
		return s.Disconnected(stage, b.clock.Now()), nil
	}
	// The confirmation takes three reads of the API server: a host that waits does not need the confirmation.
	if !facts.Bound(agent) {
		if proceed, err := b.prerequisites.Confirm(ctx, s, stage); !proceed {
			return proceed, err
		}
	}
	if proceed, err := b.applyAgent(ctx, s, stage, true, false); !proceed {
		return proceed, err
	}
	measure.Reactions(measure.ReactionTo(measure.ClusterAcceptsHosts, waitedUntil(s), b.clock.Now()))
	return b.registeredWithCluster(s, refusedByService)
}

// registeredWithCluster waits until assisted-service has added the bound Agent to the cluster.
func (b *Binder) registeredWithCluster(s *scope.Scope, refusedByService bool) (bool, error) {
	const stage = bootstrapv1.HostBoundCondition
	agent := s.Agent
	unbound := facts.Unbound(agent)
	switch {
	case refusedByService:
		return s.Blockf(stage, bootstrapv1.HostBindingReason, "assisted-service refuses to bind %s: %s", s.DescribeHost(agent),
			explained(assisted.RedactURLs(assisted.AgentCondition(agent, aiv1beta1.SpecSyncedCondition).Message))), nil
	// The wait is for assisted-service alone: the host has to register again later, which takes more time.
	case !facts.Bound(agent) || unbound:
		s.Blockf(stage, bootstrapv1.HostBindingReason, "waiting for assisted-service to add %s to the cluster", s.DescribeHost(agent))
		if reported := s.Recorded(stage); reported != nil && reported.Reason == bootstrapv1.AssistedServiceNotRespondingReason {
			b.unbound.Resume(s.Key(), reported.LastTransitionTime.Time) // this process may have started after the report
		}
		return s.Overdue(stage, b.clock.Now(), b.unbound.Since(s.Key())), nil
	case assisted.AgentCondition(agent, aiv1beta1.BoundCondition).Status != corev1.ConditionTrue:
		return b.waitForRegistration(s)
	}
	b.bound.Clear(s.Key())
	s.Pass(stage, "")
	return true, nil
}

// waitForRegistration waits until a host that assisted-service added to the cluster registers again, which takes a
// minute. Until then the Agent has no inventory and no timestamp.
func (b *Binder) waitForRegistration(s *scope.Scope) (bool, error) {
	s.Blockf(bootstrapv1.HostBoundCondition, bootstrapv1.HostBindingReason, "waiting for %s to register with the cluster",
		s.DescribeHost(s.Agent))
	return s.Silent(bootstrapv1.HostBoundCondition, b.clock.Now(), b.bound.Since(s.Key())), nil
}

// waitedUntil returns when the installation ended that blocked the binding of the host. It returns nil if no
// installation blocked the binding, or if the host was bound before.
func waitedUntil(s *scope.Scope) *metav1.Time {
	waited := s.Recorded(bootstrapv1.HostBoundCondition)
	if facts.Bound(s.Agent) || waited == nil || waited.Reason != bootstrapv1.ClusterNotAcceptingHostsReason {
		return nil
	}
	if ended := assisted.InstalledAt(s.Install); ended != nil && !ended.Before(&waited.LastTransitionTime) {
		return ended
	}
	return nil
}

// nodeNameFree waits while another Machine of the cluster has a Node with the name that the host is to get. The
// last step of the deletion of a Machine is to delete its Node by name. Both assisted-service, with the Agent, and
// Cluster API do so, no matter which Machine has the Node of that name by then.
func (b *Binder) nodeNameFree(ctx context.Context, s *scope.Scope) (bool, error) {
	const stage = bootstrapv1.HostBoundCondition
	name := s.Wanted.Hostname
	b.names.Begin(s.Key(), name)
	machines := &clusterv1.MachineList{}
	err := b.client.List(ctx, machines, client.InNamespace(s.Config.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{clusterv1.ClusterNameLabel: s.Cluster.Name})
	if err != nil {
		return false, fmt.Errorf("cannot look for Machines with a Node of the same name: %w", err)
	}
	for i := range machines.Items {
		switch other := &machines.Items[i]; {
		case other.Status.NodeRef.Name != name:
		case other.DeletionTimestamp.IsZero():
			return s.Blockf(stage, bootstrapv1.NodeNameTakenReason, "Node %s belongs to Machine %s, and %s would get the same name: set another %s",
				name, other.Name, s.DescribeHost(s.Agent), desired.HostnameSource(s.Facts)), nil
		default:
			return s.Blockf(stage, bootstrapv1.NodeNameTakenReason,
				"Node %s still belongs to Machine %s: %s gets the name when that Machine and its Node are deleted",
				name, other.Name, s.DescribeHost(s.Agent)), nil
		}
	}
	b.names.End(s.Key())
	return true, nil
}

// applyAgent applies the settings of the Agent. It returns false if the API server refuses the settings.
func (b *Binder) applyAgent(ctx context.Context, s *scope.Scope, stage string, bind, approve bool) (bool, error) {
	applied := desired.Agent(s.Agent, s.Wanted, bind, approve)
	applied.Labels = agentLabels(s.Facts)
	if s.Fencing.Source != "" {
		applied.Annotations = map[string]string{desired.FencingAnnotation: s.Fencing.Source}
	}
	// The write requires the resource version that was read. The cache may lack our approval, which the write must
	// not withdraw. Another process may have refused the Agent meanwhile: a refused Agent must not get an approval.
	applied.SetResourceVersion(s.Agent.ResourceVersion)
	_, err := b.writer.Applier.Apply(ctx, applied, s.Agent)
	if field := kube.UndeclaredField(err); field != "" {
		return b.writer.Refused(s, stage, bootstrapv1.InvalidConfigurationReason, writer.TooOld, "Agents", field), nil
	}
	if kube.IsRefused(err) {
		return b.writer.Refused(s, stage, bootstrapv1.InvalidConfigurationReason, "%s is refused: %s", s.DescribeAgent(s.Agent),
			assisted.RedactURLs(err.Error())), nil
	}
	if err != nil {
		return false, err
	}
	b.writer.Accepted(stage, s.Config)
	return true, nil
}

// metal3Metadata reads the metadata that CAPM3 rendered for the host from the Metal3DataTemplate. It returns nil
// if no metadata exists.
func (b *Binder) metal3Metadata(ctx context.Context, s *scope.Scope) ([]byte, error) {
	name, _, _ := unstructured.NestedString(s.InfraMachine.Object, "status", "metaData", "name")
	if name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := b.live.Get(ctx, types.NamespacedName{Namespace: s.InfraMachine.GetNamespace(), Name: name}, secret); err != nil {
		return nil, fmt.Errorf("cannot read the metadata of the host: %w", err)
	}
	return secret.Data["metaData"], nil
}

// withoutFencing is the message of an assisted-service that was started without TNF_CLUSTERS_SUPPORT
// (updateHostFencing in its inventory.go, August 2026).
const withoutFencing = "TNF clusters support is disabled"

// explained adds to a message of assisted-service about an Agent how to start the service with fencing.
func explained(message string) string {
	if !strings.Contains(message, withoutFencing) {
		return message
	}
	return message + "; two nodes with fencing need an assisted-service that is started with TNF_CLUSTERS_SUPPORT=true"
}
