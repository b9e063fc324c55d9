// Package move keeps clusterctl from moving a cluster to another hub while the cluster cannot be moved without loss.
package move

import (
	"context"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
)

// Blocker keeps clusterctl from moving a cluster that must stay on its hub.
type Blocker struct{ writer *writer.Writer }

// NewBlocker returns a Blocker.
func NewBlocker(w *writer.Writer) *Blocker { return &Blocker{writer: w} }

// Values of the annotation that keeps clusterctl from moving a cluster. A foreign value belongs to the user.
const (
	// Installing blocks the move of a cluster that is being installed: its assisted-service would stay behind.
	Installing = "installing"
	// RemovingHosts: the Machine of a host that leaves would live on elsewhere, for clusterctl does not tell that it is
	// being deleted, and what was recorded of its host would be wrong.
	RemovingHosts = "removing-hosts"
	// UpdatingWorkers: a hub that does not update Machines in place would replace those that are not up to date.
	UpdatingWorkers = "updating-workers"
)

// Allow lets clusterctl move an installed cluster. It comes after everything that the cluster needs elsewhere is there.
func (b *Blocker) Allow(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || s.Stored.Annotations[clusterctlv1.BlockMoveAnnotation] != Installing {
		return true, nil
	}
	return true, b.unblock(ctx, s)
}

func (b *Blocker) unblock(ctx context.Context, s *scope.Scope) error {
	after := s.Stored.DeepCopy()
	delete(after.Annotations, clusterctlv1.BlockMoveAnnotation)
	return b.writer.PatchMetadata(ctx, s, after)
}

// keepsNodes reports whether the Machines that are being deleted are held for good: the only one of a control plane of
// one, and those of two nodes with fencing. They are never released, and live on where the cluster is moved to, as they
// should.
func keepsNodes(s *scope.Scope) bool {
	held := !slices.ContainsFunc(s.Machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() && !removal.Holds(m) })
	return held && (s.Fenced() || s.Replicas() == 1 && len(s.Machines) == 1)
}

// blockerOf is why an installed cluster must not be moved now; empty: it may be.
func blockerOf(s *scope.Scope) string {
	switch {
	case s.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "",
		slices.ContainsFunc(s.Machines, collections.HasDeletionTimestamp) && !keepsNodes(s):
		return RemovingHosts
	case s.WorkersRollOut():
		return UpdatingWorkers
	}
	return ""
}

// Block keeps an installed cluster where it is while hosts leave it, or its workers are brought to another version.
// It comes before anything happens to the hosts.
func (b *Blocker) Block(ctx context.Context, s *scope.Scope) (bool, error) {
	value, blocked := s.Stored.Annotations[clusterctlv1.BlockMoveAnnotation]
	ours, reason := !blocked || value == RemovingHosts || value == UpdatingWorkers, blockerOf(s)
	switch {
	case !s.Installed() || s.ClusterDeleting() || !ours || value == reason:
		return true, nil
	case reason == "":
		return true, b.unblock(ctx, s)
	}
	after := s.Stored.DeepCopy()
	annotations.AddAnnotations(after, map[string]string{clusterctlv1.BlockMoveAnnotation: reason})
	return true, b.writer.PatchMetadata(ctx, s, after)
}
