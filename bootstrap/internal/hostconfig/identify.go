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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
)

// reportHost reports which host the Machine has, or could get. It blocks no phase.
func reportHost(s *scope.Scope) {
	if told := preflight.Host(s.Facts); told != nil {
		s.Conditions = append(s.Conditions, *told)
	}
}

// identifyHost proves which Agent runs on the Machine's host, before any phase writes settings to the Agent.
func (r *Reconciler) identifyHost(ctx context.Context, s *scope.Scope) (bool, error) {
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
	if len(found.Refusals) > 0 && !reportedRefusals(s, found.Refusals) {
		s.QueueEvent(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", bound.Join(found.Refusals, "Agent"))
	}
	if found.Agent == nil {
		return r.waitForHost(ctx, s, found, leaving)
	}
	s.Agent = found.Agent
	if !s.Agent.DeletionTimestamp.IsZero() && !s.MayHaveNode(s.Agent) {
		if _, err := r.skipSpokeCleanup(ctx, s.Agent); err != nil {
			return false, err
		}
		_, _ = s.Wait(stage, bootstrapv1.WaitingForHostReason, "Agent %s is being deleted; its host comes back as another one if it still runs the discovery agent", s.Agent.Name)
		return s.Silent(r.Clock.Now(), s.Agent.DeletionTimestamp.Time)
	}
	message := runsOn(s)
	if ref := s.Config.Status.AgentRef; ref == nil || ref.Name != s.Agent.Name {
		s.Status.AgentRef = &corev1.LocalObjectReference{Name: s.Agent.Name}
		if !facts.Bound(s.Agent) { // otherwise the Agent was known before, and the status was lost
			s.Reactions = append(s.Reactions, measure.ReactionTo(measure.AgentRegistered, &s.Agent.CreationTimestamp, r.Clock.Now())...)
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
	s.Pass(stage, message)
	return true, nil
}

// waitForHost reports why the host has no Agent yet: what blocks the boot of the host, or why assisted-service may
// forget the host.
func (r *Reconciler) waitForHost(ctx context.Context, s *scope.Scope, found desired.Identification, leaving string) (bool, error) {
	const stage = bootstrapv1.HostIdentifiedCondition
	if found.Reason == bootstrapv1.WaitingForHostReason {
		lost, moved, err := r.lostAgent(ctx, s)
		switch {
		case err != nil:
			return false, err
		case moved:
			if !reportedRefusals(s, []string{lost}) {
				s.QueueEvent(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", lost)
			}
			return s.Wait(stage, bootstrapv1.HostRefusedReason, "%s", lost)
		case lost != "":
			found.Message += "; " + lost
		}
		if leaving != "" {
			found.Message += "; " + leaving
		}
		if told := s.Found(bootstrapv1.HostAvailableCondition); told != nil && told.Status == metav1.ConditionFalse {
			found.Reason, found.Message = told.Reason, found.Message+"; "+told.Message
		}
	}
	if _, _ = s.Wait(stage, found.Reason, "%s", found.Message); found.Reason != bootstrapv1.WaitingForHostReason {
		return false, nil
	}
	return s.Silent(r.Clock.Now(), silentSince(s, r.Clock.Now()))
}

// runsOn describes on which host the Agent runs.
func runsOn(s *scope.Scope) string {
	if s.Host == nil {
		return fmt.Sprintf("Agent %s runs on the host", s.Agent.Name)
	}
	return fmt.Sprintf("Agent %s runs on BareMetalHost %s/%s", s.Agent.Name, s.Host.Namespace, s.Host.Name)
}

// reportedRefusals reports whether the recorded condition names the same refusals.
func reportedRefusals(s *scope.Scope, refusals []string) bool {
	recorded := s.Recorded(bootstrapv1.HostIdentifiedCondition)
	return recorded != nil && strings.Contains(recorded.Message, bound.Join(refusals, "Agent"))
}

// matchesElsewhere finds Agents that run on the Machine's host but booted the image of another InfraEnv of the
// namespace, sorted by name. As long as the host is not identified, Agents that are being deleted are former: they
// remain from the host's former Machine. It reads all Agents of the namespace. Only hosts that are not approved
// yet need the list, and an index by MAC address would grow with all Agents of the hub.
func (r *Reconciler) matchesElsewhere(ctx context.Context, s *scope.Scope) (elsewhere, former []*aiv1beta1.Agent, err error) {
	if s.Host == nil || s.ApprovedAgent() != nil {
		r.addressWaiters.End(s.Key())
		return nil, nil, nil
	}
	wanted := metal3.IdentityOf(s.Host)
	r.addressWaiters.Begin(s.Key(), wanted.MACs...)
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
