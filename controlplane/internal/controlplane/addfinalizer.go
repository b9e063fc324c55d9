package controlplane

import (
	"context"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/cluster-api/util/annotations"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/move"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/contract"
)

// addFinalizer adds the finalizer, and blocks the move of a cluster that is not installed. It records the UID of the Cluster, by
// which the objects of this control plane are recognized. It runs before any object is created.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope.Scope) (bool, error) {
	after := s.Stored.DeepCopy()
	controllerutil.AddFinalizer(after, controlplanev1.OpenshiftAssistedControlPlaneFinalizer)
	contract.RecordClusterUID(after, s.Owner().UID)
	if _, found := after.Annotations[clusterctlv1.BlockMoveAnnotation]; !found && !s.Installed() {
		annotations.AddAnnotations(after, map[string]string{clusterctlv1.BlockMoveAnnotation: move.Installing})
	}
	return true, r.writer.PatchMetadata(ctx, s, after)
}
