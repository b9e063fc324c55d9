package controlplane

import (
	"context"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
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

// blockMove keeps an installed cluster where it is while hosts leave it. It comes before anything happens to them.
func (r *Reconciler) blockMove(ctx context.Context, s *scope) (bool, error) {
	value, blocked := s.stored.Annotations[clusterctlv1.BlockMoveAnnotation]
	going := s.ControlPlane.Annotations[controlplanev1.ReleasedHostsAnnotation] != "" ||
		slices.ContainsFunc(s.Machines, func(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
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
