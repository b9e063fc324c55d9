package hostconfig

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// addFinalizer adds the finalizer before the controller creates any object that the finalizer has to clean up.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope.Scope) (bool, error) {
	if s.Machine == nil || controllerutil.ContainsFinalizer(s.Stored, bootstrapv1.OpenshiftAssistedConfigFinalizer) {
		return true, nil
	}
	if err := r.patchFinalizers(ctx, s, controllerutil.AddFinalizer); err != nil {
		return false, fmt.Errorf("cannot add the finalizer: %w", err)
	}
	return true, nil
}

// patchFinalizers changes the finalizers of the config, if no other client has written to the config meanwhile.
func (r *Reconciler) patchFinalizers(ctx context.Context, s *scope.Scope, change func(client.Object, string) bool) error {
	after := s.Stored.DeepCopy()
	change(after, bootstrapv1.OpenshiftAssistedConfigFinalizer)
	if err := kube.PatchMetadata(ctx, r.Client, s.Stored.DeepCopy(), after, FieldOwner); err != nil {
		return err
	}
	s.Stored.SetFinalizers(after.Finalizers)
	s.Stored.SetResourceVersion(after.ResourceVersion)
	return nil
}
