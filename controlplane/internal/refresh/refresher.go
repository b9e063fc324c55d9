// Package refresh touches the AgentClusterInstall of a running installation whose state does not change.
package refresh

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// Refresher makes assisted-service publish the AgentClusterInstall of a running installation again.
type Refresher struct{ installs *reconcile.Refresher }

// NewRefresher returns a Refresher.
func NewRefresher(c client.Writer, clk clock.PassiveClock) *Refresher {
	return &Refresher{installs: reconcile.NewRefresher(c, writer.FieldOwner, controlplanev1.RefreshAnnotation, clk)}
}

// Refresh touches the AgentClusterInstall if the state of the installation does not change. Before the hosts are
// prepared, and after the end, the state depends on users.
func (r *Refresher) Refresh(ctx context.Context, s *scope.Scope) (bool, error) {
	progress := s.Progress
	running := progress.State == assisted.StateReady || progress.Started && !progress.DayTwo && progress.Phase != assisted.PhaseFailed
	if s.Install == nil || !s.Ours(s.Install) || !s.Install.DeletionTimestamp.IsZero() || !running {
		return true, nil
	}
	delay, err := r.installs.Refresh(ctx, s.Install, progress.State)
	if err != nil {
		return false, err
	}
	s.Again.In(delay)
	return true, nil
}
