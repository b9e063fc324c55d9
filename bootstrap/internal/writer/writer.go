// Package writer writes the objects of the hub for the steps of a reconcile.
package writer

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// FieldOwner owns the fields that the provider sets on foreign objects.
const FieldOwner = "openshift-agent-bootstrap"

// Writer writes objects for the steps of a reconcile.
type Writer struct {
	*apply.Writer

	// Created are the last created InfraEnvs, by config, until the cache has them.
	Created *reconcile.WriteCache[types.NamespacedName, *aiv1beta1.InfraEnv]
}

// New returns a Writer that has written nothing.
func New(c client.Client, live client.Reader, clk clock.PassiveClock) *Writer {
	return &Writer{
		Writer: apply.NewWriter(c, live, FieldOwner, clk), Created: reconcile.NewWriteCache[types.NamespacedName, *aiv1beta1.InfraEnv](clk),
	}
}

// Wrote reports whether this provider wrote to an object.
func Wrote(obj client.Object) bool {
	return len(apply.Own(FieldOwner, obj.GetManagedFields())) > 0
}

// PatchFinalizers changes the finalizers of the config, if no other client has written to the config meanwhile.
func (w *Writer) PatchFinalizers(ctx context.Context, s *scope.Scope, change func(client.Object, string) bool) error {
	after := s.Stored.DeepCopy()
	change(after, bootstrapv1.OpenshiftAssistedConfigFinalizer)
	if err := kube.PatchMetadata(ctx, w.Client, s.Stored.DeepCopy(), after, FieldOwner); err != nil {
		return err
	}
	s.Stored.SetFinalizers(after.Finalizers)
	s.Stored.SetResourceVersion(after.ResourceVersion)
	return nil
}
