package hostconfig

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// addFinalizer adds the finalizer before the controller creates any object that the finalizer has to clean up.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope) (bool, error) {
	if s.Machine == nil || controllerutil.ContainsFinalizer(s.stored, bootstrapv1.OpenshiftAssistedConfigFinalizer) {
		return true, nil
	}
	if err := r.patchFinalizers(ctx, s, controllerutil.AddFinalizer); err != nil {
		return false, fmt.Errorf("cannot add the finalizer: %w", err)
	}
	return true, nil
}

// patchFinalizers changes the finalizers of the config, if no other client has written to the config meanwhile.
func (r *Reconciler) patchFinalizers(ctx context.Context, s *scope, change func(client.Object, string) bool) error {
	after := s.stored.DeepCopy()
	change(after, bootstrapv1.OpenshiftAssistedConfigFinalizer)
	if err := kube.PatchMetadata(ctx, r.Client, s.stored.DeepCopy(), after, FieldOwner); err != nil {
		return err
	}
	s.stored.SetFinalizers(after.Finalizers)
	s.stored.SetResourceVersion(after.ResourceVersion)
	return nil
}
