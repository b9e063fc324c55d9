package config

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	"github.com/openshift/assisted-service/models"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// identification is the outcome of the search for the Agent of the Machine's host.
type identification struct {
	// agent is the proven one; nil when there is none yet.
	agent *aiv1beta1.Agent
	// reason and message say what is waited for when there is none.
	reason, message string
	// refusals say which Agents were seen that are not the Machine's host, and why.
	refusals []string
	// others are further Agents of the Machine's host, from earlier registrations under another id.
	others []*aiv1beta1.Agent
}

// identifyHost proves which Agent runs on the Machine's host, before anything is told to it.
func (r *Reconciler) identifyHost(ctx context.Context, s *scope) (bool, error) {
	elsewhere, err := r.matchesElsewhere(ctx, s)
	if err != nil {
		return false, err
	}
	found := identify(s.Facts, elsewhere)
	const stage = bootstrapv1.HostIdentifiedCondition
	if len(found.refusals) > 0 && !s.toldRefusals(found.refusals) {
		s.tell(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", strings.Join(found.refusals, "; "))
	}
	if found.agent == nil {
		if mismatch := s.NetworkMismatch(); mismatch != "" && found.reason == bootstrapv1.WaitingForHostReason {
			found.message += "; " + mismatch
		}
		return s.wait(stage, found.reason, "%s", found.message)
	}
	s.agent = found.agent
	if !s.agent.DeletionTimestamp.IsZero() && !s.MayHaveNode(s.agent) {
		if _, err := r.skipSpokeCleanup(ctx, s.agent); err != nil {
			return false, err
		}
		return s.wait(stage, bootstrapv1.WaitingForHostReason, "Agent %s is being deleted; its host comes back as another one if it still runs the discovery agent", s.agent.Name)
	}
	message := fmt.Sprintf("Agent %s runs on the host", s.agent.Name)
	if s.Host != nil {
		message = fmt.Sprintf("Agent %s runs on BareMetalHost %s/%s", s.agent.Name, s.Host.Namespace, s.Host.Name)
	}
	if ref := s.Config.Status.AgentRef; ref == nil || ref.Name != s.agent.Name {
		s.status.AgentRef = &corev1.LocalObjectReference{Name: s.agent.Name}
	}
	unused := make([]string, 0, len(found.others))
	for _, other := range found.others {
		if err := r.unbind(ctx, s, other); err != nil {
			return false, err
		}
		unused = append(unused, other.Name)
	}
	if len(unused) > 0 {
		message += "; of the same host, and not used, is Agent " + strings.Join(unused, ", ") + ": delete it"
	}
	if len(found.refusals) > 0 {
		message += "; refused: " + strings.Join(found.refusals, "; ")
	}
	s.pass(stage, bootstrapv1.HostIdentifiedReason, message)
	return true, nil
}

// toldRefusals tells whether the last report named the same refusals.
func (s *scope) toldRefusals(refusals []string) bool {
	recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition)
	return recorded != nil && strings.Contains(recorded.Message, strings.Join(refusals, "; "))
}

// matchesElsewhere finds Agents that run on the Machine's host but booted the image of another InfraEnv of the namespace.
func (r *Reconciler) matchesElsewhere(ctx context.Context, s *scope) ([]*aiv1beta1.Agent, error) {
	if s.Host == nil || s.Config.Status.AgentRef != nil {
		return nil, nil
	}
	own := map[string]bool{}
	for _, infraEnv := range s.InfraEnvs {
		own[infraEnv.Name] = true
	}
	var found []*aiv1beta1.Agent
	seen := map[string]bool{}
	wanted := metal3.IdentityOf(s.Host)
	for _, mac := range wanted.MACs {
		agents := &aiv1beta1.AgentList{}
		if err := r.Client.List(ctx, agents, client.InNamespace(s.Config.Namespace), client.MatchingFields{agentByMAC: mac}); err != nil {
			return nil, fmt.Errorf("cannot look for Agents by MAC address: %w", err)
		}
		for i := range agents.Items {
			agent := &agents.Items[i]
			if !own[facts.InfraEnvOf(agent)] && !seen[agent.Name] && wanted.Mismatch(metal3.AgentIdentity(agent)) == "" {
				seen[agent.Name] = true
				found = append(found, agent)
			}
		}
	}
	return found, nil
}

// identify decides which of the Agents that booted from the Machine's own InfraEnv runs on its host. With a BareMetalHost the hardware must
// match. Without, only the Machine was given this InfraEnv's image: a single Agent is its host, two prove that the image got into other hands.
func identify(f *facts.Facts, elsewhere []*aiv1beta1.Agent) identification {
	approved, host := f.ApprovedAgent(), f.Host
	if f.HasBareMetalHost() && host == nil {
		if approved != nil {
			return identification{agent: approved}
		}
		return identification{reason: bootstrapv1.WaitingForHostReason, message: "waiting for the infrastructure provider to choose a BareMetalHost"}
	}
	if !f.HasBareMetalHost() {
		return identifyAlone(f.Agents)
	}
	wanted := metal3.IdentityOf(host)
	name := host.Namespace + "/" + host.Name
	if len(wanted.MACs) == 0 && approved == nil {
		return identification{
			reason:  bootstrapv1.WaitingForHostIdentityReason,
			message: fmt.Sprintf("BareMetalHost %s has no MAC address to compare with: set spec.bootMACAddress or wait for inspection", name),
		}
	}
	var result identification
	var matching []*aiv1beta1.Agent
	var silent []string
	for _, agent := range f.Agents {
		switch {
		case agent == approved: // proven before; it stays the Machine's host whatever happens to the BareMetalHost
			matching = append(matching, agent)
		case !assisted.HasInventory(agent) && f.Known(agent) && facts.Bound(agent):
			matching = append(matching, agent) // proven before; the service forgets the inventory of a host that it binds
		case !assisted.HasInventory(agent):
			silent = append(silent, agent.Name)
		default:
			if mismatch := wanted.Mismatch(metal3.AgentIdentity(agent)); mismatch == "" {
				matching = append(matching, agent)
			} else {
				result.refusals = append(result.refusals, fmt.Sprintf("Agent %s is not BareMetalHost %s: %s", agent.Name, name, mismatch))
			}
		}
	}
	for _, agent := range elsewhere {
		result.refusals = append(result.refusals, fmt.Sprintf(
			"Agent %s has the MAC addresses of BareMetalHost %s but booted the image of InfraEnv %s: two BareMetalHosts probably have the same BMC address",
			agent.Name, name, facts.InfraEnvOf(agent)))
	}
	if len(matching) == 0 {
		result.reason, result.message = explain(name, silent, result.refusals)
		return result
	}
	result.agent = foremost(f, matching)
	result.others = slices.DeleteFunc(matching, func(agent *aiv1beta1.Agent) bool { return agent == result.agent })
	return result
}

// foremost returns the one of several Agents of a host that is the Machine's: the recorded one, else one that may be installing it already, else the one
// that is in touch with assisted-service. A host gets a further Agent when its system UUID changes.
func foremost(f *facts.Facts, agents []*aiv1beta1.Agent) *aiv1beta1.Agent {
	return slices.MinFunc(agents, func(a, b *aiv1beta1.Agent) int { return rankOf(f, a) - rankOf(f, b) })
}

func rankOf(f *facts.Facts, agent *aiv1beta1.Agent) int {
	switch {
	case f.Known(agent):
		return 0
	case facts.Bound(agent) && agent.Spec.Approved:
		return 1
	case assisted.AgentCondition(agent, aiv1beta1.ConnectedCondition).Status == corev1.ConditionTrue:
		return 2
	}
	return 3
}

func explain(host string, silent, refusals []string) (reason, message string) {
	switch {
	case len(refusals) > 0:
		// The Bare Metal Operator's webhook refuses another boot MAC or BMC address.
		return bootstrapv1.HostRefusedReason, strings.Join(refusals, "; ") + ". If BareMetalHost " + host + " is wrong, delete the Machine and make the BareMetalHost anew"
	case len(silent) > 0:
		return bootstrapv1.WaitingForHostIdentityReason, fmt.Sprintf("waiting for Agent %s to report its hardware", strings.Join(silent, ", "))
	default:
		return bootstrapv1.WaitingForHostReason, fmt.Sprintf("waiting for BareMetalHost %s to boot the discovery image", host)
	}
}

func identifyAlone(agents []*aiv1beta1.Agent) identification {
	switch len(agents) {
	case 0:
		return identification{reason: bootstrapv1.WaitingForHostReason, message: "waiting for the host to boot the discovery image"}
	case 1:
		if !assisted.HasInventory(agents[0]) && !facts.Bound(agents[0]) {
			return identification{reason: bootstrapv1.WaitingForHostIdentityReason, message: fmt.Sprintf("waiting for Agent %s to report its hardware", agents[0].Name)}
		}
		return identification{agent: agents[0]}
	}
	for _, agent := range agents {
		if agent.Spec.Approved && facts.Bound(agent) {
			return identification{agent: agent, refusals: []string{fmt.Sprintf("%d Agents booted the discovery image of this Machine", len(agents))}}
		}
	}
	names := make([]string, 0, len(agents))
	for _, agent := range agents {
		names = append(names, agent.Name)
	}
	message := fmt.Sprintf("Agents %s booted the discovery image of this Machine, and nothing tells which of them is its host: delete the Agent that is not", strings.Join(names, ", "))
	return identification{reason: bootstrapv1.HostRefusedReason, message: message, refusals: []string{message}}
}

// restore keeps what is known of a Machine that is older than the status of its config (after a move or a restore), and keeps hands off a host
// that was installed.
func (r *Reconciler) restore(ctx context.Context, s *scope) (bool, error) {
	if s.Machine != nil && s.Config.Status.DataSecretName == "" && s.Machine.Spec.Bootstrap.DataSecretName != nil {
		s.status.DataSecretName = *s.Machine.Spec.Bootstrap.DataSecretName
		s.status.Initialization.DataSecretCreated = ptr.To(true)
	}
	if !s.HandsOff() {
		return true, nil
	}
	if err := r.keepOwner(ctx, s); err != nil {
		return false, err
	}
	s.pass(bootstrapv1.DiscoveryImageReadyCondition, bootstrapv1.DiscoveryImageReadyReason, "")
	s.pass(bootstrapv1.DataSecretAvailableCondition, bootstrapv1.DataSecretAvailableReason, "")
	if agent := s.discoveredAgain(r.now()); agent != nil {
		if recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition); recorded == nil || recorded.Reason != bootstrapv1.HostBootedDiscoveryAgainReason {
			s.tell(corev1.EventTypeWarning, bootstrapv1.HostBootedDiscoveryAgainReason, "the installed host booted the discovery image as Agent %s", agent.Name)
		}
		_, _ = s.wait(bootstrapv1.HostIdentifiedCondition, bootstrapv1.HostBootedDiscoveryAgainReason,
			"the host is installed but booted the discovery image again (Agent %s); it is not installed a second time: make it boot from its disk, or delete the Machine", agent.Name)
	} else {
		message := ""
		if recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition); recorded != nil && recorded.Status == metav1.ConditionTrue {
			message = recorded.Message
		}
		s.pass(bootstrapv1.HostIdentifiedCondition, bootstrapv1.HostIdentifiedReason, message)
	}
	s.pass(bootstrapv1.HostBoundCondition, bootstrapv1.HostBoundReason, "")
	s.pass(bootstrapv1.HostApprovedCondition, bootstrapv1.HostApprovedReason, "")
	s.pass(bootstrapv1.HostInstalledCondition, bootstrapv1.HostInstalledReason, "")
	return false, nil
}

// discoveredAgain returns an Agent on the Machine's installed host that waits to be installed, or to be sent back to its disk; nil when there is none.
func (s *scope) discoveredAgain(now time.Time) *aiv1beta1.Agent {
	for _, agent := range s.Agents {
		switch {
		case agent.Spec.Approved && agent.Status.DebugInfo.State != models.HostStatusInstallingPendingUserAction:
			continue
		case agent.Spec.Approved && s.nodeIsBack(agent, now):
			continue
		case agent.Spec.Approved && s.Known(agent):
			return agent
		case !assisted.HasInventory(agent):
			continue
		}
		if s.Host == nil || metal3.IdentityOf(s.Host).Mismatch(metal3.AgentIdentity(agent)) == "" {
			return agent
		}
	}
	return nil
}

// nodeNoticed is the time after which the Machine tells that its Node is away: Kubernetes takes 40 seconds, Cluster API five minutes where the cluster does
// not answer.
const nodeNoticed = 10 * time.Minute

// nodeIsBack tells whether the Node of the host runs again, after its Agent told that it booted the discovery image. assisted-service does not notice that
// of a host of the second day: the Agent's state stays. So what was once told to be over is over, or each restart of the Node would look like another.
func (s *scope) nodeIsBack(agent *aiv1beta1.Agent, now time.Time) bool {
	since := assisted.AgentCondition(agent, aiv1beta1.InstalledCondition).LastTransitionTime.Time
	if told := s.Recorded(bootstrapv1.HostIdentifiedCondition); told != nil && told.Status == metav1.ConditionTrue && told.LastTransitionTime.After(since) {
		return true
	}
	ready := meta.FindStatusCondition(s.Machine.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return false
	}
	left := nodeNoticed - now.Sub(since)
	if left <= 0 || ready.LastTransitionTime.After(since) {
		return true
	}
	s.again.In(left)
	return false
}
