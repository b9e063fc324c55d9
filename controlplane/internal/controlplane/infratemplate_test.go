package controlplane

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube/kubetest"
)

// On an OpenShift hub the administrator did not grant the verb delete for the templates of another
// infrastructure provider. The cluster is installed nevertheless.
func TestTemplateWhoseOwnersTheHubRefusesIsReported(t *testing.T) {
	h := newHub(t, world(nil)...).withTime()
	h.undeletable = kubetest.Undeletable{"Metal3MachineTemplate"}
	h.install()
	h.endDeferral()
	h.Expect(h.reconcile().RequeueAfter).NotTo(BeZero(), "no event reports that the right was granted")
	created := conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)
	h.Expect(created.Status).To(Equal(metav1.ConditionTrue))
	h.Expect(created.Message).To(
		And(ContainSubstring("Metal3MachineTemplate hosts keeps its owner references"), ContainSubstring("Add the verb delete")),
	)
	writes := len(h.writes)
	h.reconcile()
	h.Expect(h.writes[writes:]).NotTo(ContainElement("patch hosts"), "the refused write is not repeated at once")
	h.undeletable = nil
	h.clock.now = func() time.Time { return time.Now().Add(time.Hour) }
	h.reconcile()
	h.Expect(h.writes).To(ContainElement("patch hosts"))
}

// The roles name the kinds of Metal3. An administrator has to add the kinds of other infrastructure
// providers.
func TestForbiddenWriteOfTemplateIsReported(t *testing.T) {
	h := newHub(t, world(nil)...)
	h.cached.Client = interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() == "hosts" {
				return apierrors.NewForbidden(schema.GroupResource{Group: infraGV.Group, Resource: "hosttemplates"}, obj.GetName(), nil)
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	_, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}})
	h.Expect(err).To(HaveOccurred(), "the write is retried")
	created := conditions.Get(h.controlPlane(), controlplanev1.MachinesCreatedCondition)
	h.Expect(created).NotTo(BeNil())
	h.Expect(created.Reason).To(Equal(controlplanev1.MachineCreationFailedReason))
	h.Expect(created.Message).To(ContainSubstring(`hosttemplates.infrastructure.cluster.x-k8s.io "hosts" is forbidden`))
}
