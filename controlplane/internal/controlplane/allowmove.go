package controlplane

import (
	"context"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

// allowMove lets clusterctl move an installed cluster. It comes after everything that the cluster needs elsewhere is there.
func (r *Reconciler) allowMove(ctx context.Context, s *scope) (bool, error) {
	if !s.Installed() || s.stored.Annotations[clusterctlv1.BlockMoveAnnotation] != duringInstallation {
		return true, nil
	}
	after := s.stored.DeepCopy()
	delete(after.Annotations, clusterctlv1.BlockMoveAnnotation)
	return true, r.patchMetadata(ctx, s, after)
}
