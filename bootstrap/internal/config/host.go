package config

import (
	"context"
	"fmt"
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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// identifyHost proves which Agent runs on the Machine's host, before anything is told to it.
func (r *Reconciler) identifyHost(ctx context.Context, s *scope) (bool, error) {
	elsewhere, err := r.matchesElsewhere(ctx, s)
	if err != nil {
		return false, err
	}
	found := desired.Identify(s.Facts, elsewhere)
	const stage = bootstrapv1.HostIdentifiedCondition
	if len(found.Refusals) > 0 && !s.toldRefusals(found.Refusals) {
		s.tell(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", strings.Join(found.Refusals, "; "))
	}
	if found.Agent == nil {
		if mismatch := s.NetworkMismatch(); mismatch != "" && found.Reason == bootstrapv1.WaitingForHostReason {
			found.Message += "; " + mismatch
		}
		return s.wait(stage, found.Reason, "%s", found.Message)
	}
	s.agent = found.Agent
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
	unused := make([]string, 0, len(found.Others))
	for _, other := range found.Others {
		if err := r.unbind(ctx, s, other); err != nil {
			return false, err
		}
		unused = append(unused, other.Name)
	}
	if len(unused) > 0 {
		message += "; of the same host, and not used, is Agent " + strings.Join(unused, ", ") + ": delete it"
	}
	if len(found.Refusals) > 0 {
		message += "; refused: " + strings.Join(found.Refusals, "; ")
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
