package controlplane

import (
	"context"
	"slices"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/cluster-api/util/collections"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/removal"
)

// whileHostsGo is the value of the annotation with which we keep clusterctl from moving a cluster that a host leaves: its Machine would live on elsewhere, for
// clusterctl does not tell that it is being deleted, and what was recorded of its host would be wrong.
const whileHostsGo = "removing-hosts"

// allowMove lets clusterctl move an installed cluster. It comes after everything that the cluster needs elsewhere is there.
func (r *Reconciler) allowMove(ctx context.Context, s *scope) (bool, error) {
	if !s.Installed() || s.stored.Annotations[clusterctlv1.BlockMoveAnnotation] != duringInstallation {
		return true, nil
	}
	return true, r.unblockMove(ctx, s)
}

func (r *Reconciler) unblockMove(ctx context.Context, s *scope) error {
	after := s.stored.DeepCopy()
	delete(after.Annotations, clusterctlv1.BlockMoveAnnotation)
	return r.patchMetadata(ctx, s, after)
}

// keepsItsNode tells whether the only Machine of a control plane of one is held. It is never released, and lives on where the cluster is moved to, as it should.
func (s *scope) keepsItsNode() bool {
	return s.Replicas() == 1 && len(s.Machines) == 1 && removal.Holds(s.Machines[0])
}

// blockMove keeps an installed cluster where it is while hosts leave it. It comes before anything happens to them.
func (r *Reconciler) blockMove(ctx context.Context, s *scope) (bool, error) {
	value, blocked := s.stored.Annotations[clusterctlv1.BlockMoveAnnotation]
	going := s.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" ||
		slices.ContainsFunc(s.Machines, collections.HasDeletionTimestamp) && !s.keepsItsNode()
	switch {
	case !s.Installed() || s.GoesWhole():
		return true, nil
	case going && !blocked:
		after := s.stored.DeepCopy()
		annotations.AddAnnotations(after, map[string]string{clusterctlv1.BlockMoveAnnotation: whileHostsGo})
		return true, r.patchMetadata(ctx, s, after)
	case !going && value == whileHostsGo:
		return true, r.unblockMove(ctx, s)
	}
	return true, nil
}
