package hostconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	aiv1beta1 "github.com/openshift/assisted-service/api/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// reportHost reports which host the Machine has, or could get. It blocks no phase.
func (s *scope) reportHost() {
	if told := preflight.Host(s.Facts); told != nil {
		s.conditions = append(s.conditions, *told)
	}
}

// identifyHost proves which Agent runs on the Machine's host, before any phase writes settings to the Agent.
func (r *Reconciler) identifyHost(ctx context.Context, s *scope) (bool, error) {
	elsewhere, former, err := r.matchesElsewhere(ctx, s)
	if err != nil {
		return false, err
	}
	leaving, err := r.endFormer(ctx, s, former)
	if err != nil {
		return false, err
	}
	found := desired.Identify(s.Facts, elsewhere)
	const stage = bootstrapv1.HostIdentifiedCondition
	for _, refused := range found.Refused {
		if err := r.unbind(ctx, s, refused); err != nil {
			return false, err
		}
	}
	if proceed, err := r.unclaimed(ctx, s, found, elsewhere); !proceed {
		return proceed, err
	}
	if len(found.Refusals) > 0 && !s.reportedRefusals(found.Refusals) {
		s.queueEvent(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", bound.Join(found.Refusals, "Agent"))
	}
	if found.Agent == nil {
		return r.waitForHost(ctx, s, found, leaving)
	}
	s.agent = found.Agent
	if !s.agent.DeletionTimestamp.IsZero() && !s.MayHaveNode(s.agent) {
		if _, err := r.skipSpokeCleanup(ctx, s.agent); err != nil {
			return false, err
		}
		_, _ = s.wait(stage, bootstrapv1.WaitingForHostReason, "Agent %s is being deleted; its host comes back as another one if it still runs the discovery agent", s.agent.Name)
		return r.silent(s, s.agent.DeletionTimestamp.Time)
	}
	message := s.runsOn()
	if ref := s.Config.Status.AgentRef; ref == nil || ref.Name != s.agent.Name {
		s.status.AgentRef = &corev1.LocalObjectReference{Name: s.agent.Name}
		if !facts.Bound(s.agent) { // otherwise the Agent was known before, and the status was lost
			s.reactions = append(s.reactions, measure.ReactionTo(measure.AgentRegistered, &s.agent.CreationTimestamp, r.Clock.Now())...)
		}
	}
	unused := make([]string, 0, len(found.Others))
	for _, other := range found.Others {
		if err := r.unbind(ctx, s, other); err != nil {
			return false, err
		}
		unused = append(unused, other.Name)
	}
	if len(found.Refusals) > 0 {
		message += "; refused: " + bound.Join(found.Refusals, "Agent")
	}
	if len(unused) > 0 {
		message += "; Agent " + bound.List(unused) + " reports the same hardware and is not used. Check on console or BMC which of them is the server before you delete that Agent: an installed server would be reinstalled"
	}
	s.pass(stage, message)
	return true, nil
}

// waitForHost reports why the host has no Agent yet: what blocks the boot of the host, or why assisted-service may
// forget the host.
func (r *Reconciler) waitForHost(ctx context.Context, s *scope, found desired.Identification, leaving string) (bool, error) {
	const stage = bootstrapv1.HostIdentifiedCondition
	if found.Reason == bootstrapv1.WaitingForHostReason {
		lost, moved, err := r.lostAgent(ctx, s)
		switch {
		case err != nil:
			return false, err
		case moved:
			if !s.reportedRefusals([]string{lost}) {
				s.queueEvent(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", lost)
			}
			return s.wait(stage, bootstrapv1.HostRefusedReason, "%s", lost)
		case lost != "":
			found.Message += "; " + lost
		}
		if leaving != "" {
			found.Message += "; " + leaving
		}
		if told := s.found(bootstrapv1.HostAvailableCondition); told != nil && told.Status == metav1.ConditionFalse {
			found.Reason, found.Message = told.Reason, found.Message+"; "+told.Message
		}
	}
	if _, _ = s.wait(stage, found.Reason, "%s", found.Message); found.Reason != bootstrapv1.WaitingForHostReason {
		return false, nil
	}
	return r.silent(s, s.silentSince(r.Clock.Now()))
}

// runsOn describes on which host the Agent runs.
func (s *scope) runsOn() string {
	if s.Host == nil {
		return fmt.Sprintf("Agent %s runs on the host", s.agent.Name)
	}
	return fmt.Sprintf("Agent %s runs on BareMetalHost %s/%s", s.agent.Name, s.Host.Namespace, s.Host.Name)
}

// reportedRefusals reports whether the recorded condition names the same refusals.
func (s *scope) reportedRefusals(refusals []string) bool {
	recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition)
	return recorded != nil && strings.Contains(recorded.Message, bound.Join(refusals, "Agent"))
}

// matchesElsewhere finds Agents that run on the Machine's host but booted the image of another InfraEnv of the
// namespace, sorted by name. As long as the host is not identified, Agents that are being deleted are former: they
// remain from the host's former Machine. It reads all Agents of the namespace. Only hosts that are not approved
// yet need the list, and an index by MAC address would grow with all Agents of the hub.
func (r *Reconciler) matchesElsewhere(ctx context.Context, s *scope) (elsewhere, former []*aiv1beta1.Agent, err error) {
	if s.Host == nil || s.ApprovedAgent() != nil {
		r.addressWaiters.ended(keyOf(s.Config))
		return nil, nil, nil
	}
	wanted := metal3.IdentityOf(s.Host)
	r.addressWaiters.begun(keyOf(s.Config), wanted.MACs...)
	agents := &aiv1beta1.AgentList{}
	if err := r.Client.List(ctx, agents, client.InNamespace(s.Config.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("cannot look for Agents by MAC address: %w", err)
	}
	for i := range agents.Items {
		agent := &agents.Items[i]
		if name := facts.InfraEnvOf(agent); name == s.Machine.Name || s.OwnInfraEnv(name) || !wanted.SharesMAC(metal3.AgentIdentity(agent)) || s.Mismatch(agent) != "" {
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
