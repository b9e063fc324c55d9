package controlplane

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
)

// Values of the annotation that keeps clusterctl from moving a cluster. A foreign value belongs to the user.
const (
	// duringInstallation blocks the move of a cluster that is being installed: its assisted-service would stay behind.
	duringInstallation = "installing"
	// whileHostsGo: the Machine of a host that leaves would live on elsewhere, for clusterctl does not tell that it is
	// being deleted, and what was recorded of its host would be wrong.
	whileHostsGo = "removing-hosts"
	// whileWorkersRollOut: a hub that does not update Machines in place would replace those that are not up to date.
	whileWorkersRollOut = "updating-workers"
)

// allowMove lets clusterctl move an installed cluster. It comes after everything that the cluster needs elsewhere is there.
func (r *Reconciler) allowMove(ctx context.Context, s *scope.Scope) (bool, error) {
	if !s.Installed() || s.Stored.Annotations[clusterctlv1.BlockMoveAnnotation] != duringInstallation {
		return true, nil
	}
	return true, r.unblockMove(ctx, s)
}

func (r *Reconciler) unblockMove(ctx context.Context, s *scope.Scope) error {
	after := s.Stored.DeepCopy()
	delete(after.Annotations, clusterctlv1.BlockMoveAnnotation)
	return r.writer.PatchMetadata(ctx, s, after)
}

// keepsNodes reports whether the Machines that are being deleted are held for good: the only one of a control plane of
// one, and those of two nodes with fencing. They are never released, and live on where the cluster is moved to, as they
// should.
func keepsNodes(s *scope.Scope) bool {
	held := !slices.ContainsFunc(s.Machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() && !removal.Holds(m) })
	return held && (s.Fenced() || s.Replicas() == 1 && len(s.Machines) == 1)
}

// staysFor is why an installed cluster must not be moved now; empty: it may be.
func staysFor(s *scope.Scope) string {
	switch {
	case s.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "",
		slices.ContainsFunc(s.Machines, collections.HasDeletionTimestamp) && !keepsNodes(s):
		return whileHostsGo
	case s.WorkersRollOut():
		return whileWorkersRollOut
	}
	return ""
}

// blockMove keeps an installed cluster where it is while hosts leave it, or its workers are brought to another version.
// It comes before anything happens to the hosts.
func (r *Reconciler) blockMove(ctx context.Context, s *scope.Scope) (bool, error) {
	value, blocked := s.Stored.Annotations[clusterctlv1.BlockMoveAnnotation]
	ours, reason := !blocked || value == whileHostsGo || value == whileWorkersRollOut, staysFor(s)
	switch {
	case !s.Installed() || s.ClusterDeleting() || !ours || value == reason:
		return true, nil
	case reason == "":
		return true, r.unblockMove(ctx, s)
	}
	after := s.Stored.DeepCopy()
	annotations.AddAnnotations(after, map[string]string{clusterctlv1.BlockMoveAnnotation: reason})
	return true, r.writer.PatchMetadata(ctx, s, after)
}
