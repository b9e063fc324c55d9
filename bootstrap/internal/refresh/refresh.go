// Package refresh makes assisted-service publish Agents again whose status may be old.
package refresh

import (
	"context"

	"k8s.io/utils/clock"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// maxAgents bounds the Agents of one InfraEnv that are touched. More than one exists only if other servers booted its
// discovery image.
const maxAgents = 8

// Refresher touches Agents.
type Refresher struct{ agents *reconcile.Refresher }

// New returns a Refresher.
func New(w *writer.Writer, clk clock.PassiveClock) *Refresher {
	return &Refresher{agents: reconcile.NewRefresher(w.Client, writer.FieldOwner, bootstrapv1.RefreshAnnotation, clk)}
}

// Refresh touches the Agents of the Machine from which the next step of the installation is expected, and which do not
// change. Nothing is expected any more of the Agent of an installed host.
func (r *Refresher) Refresh(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.IsFinished() {
		return true, nil
	}
	for _, agent := range s.Agents[:min(len(s.Agents), maxAgents)] {
		state := facts.Unfinished(agent)
		if state == "" || s.BoundElsewhere(agent) {
			continue
		}
		delay, err := r.agents.Refresh(ctx, agent, state)
		if err != nil {
			return false, err
		}
		s.Again.In(delay)
	}
	return true, nil
}
