// Package identification proves which Agent runs on the host of a Machine.
package identification

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/claims"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/deletion"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/preflight"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
)

// Identifier identifies hosts.
type Identifier struct {
	client   client.Reader
	writer   *writer.Writer
	claims   *claims.Checker
	releaser *deletion.Releaser
	clock    clock.PassiveClock
}

// New returns an Identifier.
func New(w *writer.Writer, c *claims.Checker, d *deletion.Releaser, clk clock.PassiveClock) *Identifier {
	return &Identifier{client: w.Client, writer: w, claims: c, releaser: d, clock: clk}
}

// ReportHost reports which host the Machine has, or could get. It blocks no phase.
func ReportHost(s *scope.Scope) {
	if available := preflight.Host(s.Facts); available != nil {
		s.Set(*available)
	}
}

// Identify proves which Agent runs on the Machine's host, before any phase writes settings to the Agent.
func (id *Identifier) Identify(ctx context.Context, s *scope.Scope) (bool, error) {
	elsewhere, former, err := id.claims.MatchesElsewhere(ctx, s)
	if err != nil {
		return false, err
	}
	leaving, err := id.releaser.EndFormer(ctx, s, former)
	if err != nil {
		return false, err
	}
	found := desired.Identify(s.Facts, elsewhere)
	const stage = bootstrapv1.HostIdentifiedCondition
	for _, refused := range found.Refused {
		if err := id.unbind(ctx, s, refused); err != nil {
			return false, err
		}
	}
	if proceed, err := id.claims.Check(ctx, s, found, elsewhere); !proceed {
		return proceed, err
	}
	if len(found.Refusals) > 0 && !reportedRefusals(s, found.Refusals) {
		s.StatusEvent(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", bound.Join(found.Refusals, "Agent"))
	}
	if found.Agent == nil {
		return id.waitForHost(ctx, s, found, leaving)
	}
	s.Agent = found.Agent
	if !s.Agent.DeletionTimestamp.IsZero() && !s.MayHaveNode(s.Agent) {
		if _, err := id.releaser.SkipSpokeCleanup(ctx, s.Agent); err != nil {
			return false, err
		}
		s.Blockf(stage, bootstrapv1.WaitingForHostReason,
			"%s is being deleted; its host registers as another Agent if it still runs the discovery agent", s.DescribeAgent(s.Agent))
		return s.Silent(stage, id.clock.Now(), s.Agent.DeletionTimestamp.Time), nil
	}
	message := RunsOn(s)
	if ref := s.Config.Status.AgentRef; ref == nil || ref.Name != s.Agent.Name {
		s.Status.AgentRef = &corev1.LocalObjectReference{Name: s.Agent.Name}
		if !facts.Bound(s.Agent) { // otherwise the Agent was known before, and the status was lost
			s.Reactions = append(s.Reactions, measure.ReactionTo(measure.AgentRegistered, &s.Agent.CreationTimestamp, id.clock.Now())...)
		}
	}
	unused := make([]string, 0, len(found.Others))
	for _, other := range found.Others {
		if err := id.unbind(ctx, s, other); err != nil {
			return false, err
		}
		unused = append(unused, other.Name)
	}
	if len(found.Refusals) > 0 {
		message += "; refused: " + bound.Join(found.Refusals, "Agent")
	}
	if len(unused) > 0 {
		message += "; Agent " + bound.List(unused) +
			" reports the same hardware and is not used. Check on console or BMC which of them is the server before you delete that Agent: an " +
			"installed server would be reinstalled"
	}
	s.Pass(stage, message)
	return true, nil
}

// mayRegister are the reasons that do not exclude that a provisioned host registers. If such a host stays silent, that is the
// problem to report. All other reasons of HostAvailable are problems of their own.
var mayRegister = sets.New(
	bootstrapv1.WaitingForHostReason, bootstrapv1.HostUnhealthyReason, bootstrapv1.NMStateConfigMismatchReason,
	bootstrapv1.NoHostFitsReason, bootstrapv1.TooFewHostsReason,
)

// waitForHost reports why the host has no Agent yet: what blocks the boot of the host, or why assisted-service may
// forget the host.
func (id *Identifier) waitForHost(ctx context.Context, s *scope.Scope, found desired.Identification, leaving string) (bool, error) {
	const stage = bootstrapv1.HostIdentifiedCondition
	if found.Reason == bootstrapv1.WaitingForHostReason {
		lost, moved, err := id.lostAgent(ctx, s)
		switch {
		case err != nil:
			return false, err
		case moved:
			if !reportedRefusals(s, []string{lost}) {
				s.StatusEvent(corev1.EventTypeWarning, bootstrapv1.HostRefusedReason, "%s", lost)
			}
			return s.Block(stage, bootstrapv1.HostRefusedReason, lost), nil
		case lost != "":
			found.Message += "; " + lost
		}
		if leaving != "" {
			found.Message += "; " + leaving
		}
		if available := s.Blocked(bootstrapv1.HostAvailableCondition); available != nil {
			found.Message += "; " + available.Message
			if !preflight.Pending(s.Facts) {
				found.Reason = available.Reason
			}
		}
	}
	if s.Block(stage, found.Reason, found.Message); !mayRegister.Has(found.Reason) {
		return false, nil
	}
	return s.Silent(stage, id.clock.Now(), silentSince(s, id.clock.Now())), nil
}

// RunsOn describes on which host the Agent runs.
func RunsOn(s *scope.Scope) string {
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

// unbind removes an Agent that we bound, and that is not used, from the cluster. assisted-service does not start
// the installation of a cluster with one known host more than the cluster expects.
func (id *Identifier) unbind(ctx context.Context, s *scope.Scope, agent *aiv1beta1.Agent) error {
	if !facts.BoundByUs(agent) || s.BoundElsewhere(agent) || !facts.Untouched(agent) {
		return nil
	}
	_, err := id.writer.Applier.Apply(ctx, desired.Unbound(agent), agent)
	return err
}
