// Package move blocks that clusterctl moves a cluster to another hub while the cluster cannot be moved
// without loss.
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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/versioning"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
)

// Blocker blocks that clusterctl moves a cluster that must stay on its hub.
type Blocker struct{ writer *writer.Writer }

// NewBlocker returns a Blocker.
func NewBlocker(w *writer.Writer) *Blocker { return &Blocker{writer: w} }

// Values of the annotation that blocks that clusterctl moves a cluster. A foreign value belongs to the user.
const (
	// Installing blocks the move of a cluster that is being installed: its assisted-service would stay
	// behind.
	Installing = "installing"
	// RemovingHosts blocks the move while a host leaves the cluster. clusterctl does not copy deletion
	// timestamps: on the other hub the Machine would not be deleted, and the record of its host would be
	// wrong.
	RemovingHosts = "removing-hosts"
	// UpdatingWorkers blocks the move while workers are updated. A hub without in-place updates would replace
	// outdated Machines.
	UpdatingWorkers = "updating-workers"
)

// Allow allows the move of an installed cluster. It runs after all objects exist that the cluster needs on
// another hub.
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

// keepsNodes reports whether the Machines that are being deleted are never released. This holds for the
// Machine of a control plane of one Machine, and for the Machines of two nodes with fencing. They stay on the
// hub to which the cluster is moved.
func keepsNodes(s *scope.Scope) bool {
	withoutHook := func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() && !removal.HasHook(m) }
	allHeld := !slices.ContainsFunc(s.Machines, withoutHook)
	return allHeld && (s.Fenced() || s.Replicas() == 1 && len(s.Machines) == 1)
}

// blockerOf returns why an installed cluster must not be moved now; "" if it may be moved.
func blockerOf(s *scope.Scope) string {
	switch {
	case s.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "",
		slices.ContainsFunc(s.Machines, collections.HasDeletionTimestamp) && !keepsNodes(s):
		return RemovingHosts
	case versioning.WorkersRollOut(s.Facts):
		return UpdatingWorkers
	}
	return ""
}

// Block blocks the move of an installed cluster while hosts leave it, or its workers are updated to another
// version. It runs before any change of the hosts.
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
