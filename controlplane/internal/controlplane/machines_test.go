package controlplane

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/desired"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

func TestNoMachineIsCreatedBeforeItsObjects(t *testing.T) {
	for situation, prepare := range map[string]func(h *hub, name string){
		"the infra machine was written a moment ago, and the cache lacks it": func(h *hub, name string) {
			h.r.writer.Recent.Record("Metal3Machine "+lab+"/"+name, "")
		},
		"the OpenshiftAssistedConfig was written a moment ago, and the cache lacks it": func(h *hub, name string) {
			h.r.writer.Recent.Record(apply.Key(&bootstrapv1.OpenshiftAssistedConfig{ObjectMeta: metav1.ObjectMeta{Namespace: lab, Name: name}}), "")
		},
	} {
		t.Run(situation, func(t *testing.T) {
			h := newHub(t, world(nil)...)
			slots, err := desired.FreeSlots(factsOf(nil), 1)
			h.Expect(err).NotTo(HaveOccurred())
			prepare(h, slots[0].Name)
			h.Expect(h.reconcile().RequeueAfter).To(BeNumerically("<=", reconcile.CacheLag))
			h.Expect(h.machines()).To(HaveLen(2), "the Machine is not created yet")
			h.withTime().reconcile()
			h.Expect(h.machines()).To(HaveLen(3))
		})
	}
}

// The cache lacks the infra machine of a former Machine, which is being deleted.
func TestNoMachineIsCreatedWithInfraMachineOfFormerMachine(t *testing.T) {
	slots, err := desired.FreeSlots(factsOf(nil), 1)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	left := infraTemplate()
	left.SetGroupVersionKind(infraGV.WithKind("Metal3Machine"))
	left.SetName(slots[0].Name)
	h := newHub(t, append(world(nil), left)...)
	h.cached.Client = blind{h.Client, slots[0].Name}
	h.reconcile()
	h.Expect(h.machines()).To(HaveLen(2))
}

// The cache still has deleted objects of a former Machine of the name. The next Machine would refer to
// objects that do not exist.
func TestNoMachineIsCreatedWithDeletedObjectsOfFormerMachine(t *testing.T) {
	for _, kind := range []string{"OpenshiftAssistedConfig", "Metal3Machine"} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, world(nil)...)
			h.reconcile()
			former := h.machines()[0]
			parts := map[string]client.Object{
				"OpenshiftAssistedConfig": &bootstrapv1.OpenshiftAssistedConfig{}, "Metal3Machine": &unstructured.Unstructured{},
			}
			parts["Metal3Machine"].GetObjectKind().SetGroupVersionKind(infraGV.WithKind("Metal3Machine"))
			h.Expect(h.Delete(t.Context(), &former)).To(Succeed())
			for of, part := range parts {
				h.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(&former), part)).To(Succeed())
				if of != kind {
					h.Expect(h.Delete(t.Context(), part)).To(Succeed())
				}
			}
			left := parts[kind]
			left.SetOwnerReferences(
				append(left.GetOwnerReferences(), *metav1.NewControllerRef(&former, clusterv1.GroupVersion.WithKind("Machine"))),
			) // as Cluster API does
			h.Expect(h.Update(t.Context(), left)).To(Succeed())
			h.withTime().reconcile()
			h.Expect(h.machines()).To(HaveLen(2), "the cache has the %s of the former Machine", kind)

			h.Expect(h.Delete(t.Context(), left)).To(Succeed())
			h.withTime().reconcile()
			h.Expect(h.machines()).To(HaveLen(3))
			h.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(&former), parts["OpenshiftAssistedConfig"])).To(Succeed())
		})
	}
}

// blind does not find the objects of a name.
type blind struct {
	client.Client
	name string
}

func (b blind) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if key.Name == b.name {
		key.Name = "unseen"
	}
	return b.Client.Get(ctx, key, into, options...)
}
