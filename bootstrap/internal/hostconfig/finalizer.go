package hostconfig

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// addFinalizer adds the finalizer before the controller creates any object that the finalizer has to clean up.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Machine == nil || controllerutil.ContainsFinalizer(s.Stored, bootstrapv1.OpenshiftAssistedConfigFinalizer) {
		return true, nil
	}
	if err := r.writer.PatchFinalizers(ctx, s, controllerutil.AddFinalizer); err != nil {
		return false, fmt.Errorf("cannot add the finalizer: %w", err)
	}
	return true, nil
}
