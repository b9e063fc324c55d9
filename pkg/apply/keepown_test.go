package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOwnKeepsAppliedFields(t *testing.T) {
	fields := metav1.NewFieldsV1(`{"f:data":{}}`)
	ours := metav1.ManagedFieldsEntry{Manager: string(us), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: fields}
	updated, status, theirs := ours, ours, ours
	updated.Operation, status.Subresource, theirs.Manager = metav1.ManagedFieldsOperationUpdate, "status", string(them)
	g := NewWithT(t)
	g.Expect(Own(us, []metav1.ManagedFieldsEntry{updated, status, theirs, ours})).To(Equal([]metav1.ManagedFieldsEntry{ours}))
	g.Expect(Own(us, []metav1.ManagedFieldsEntry{updated, status, theirs})).To(BeNil())

	again, another := ours, ours
	again.FieldsV1, again.Time = metav1.NewFieldsV1(`{"f:data":{}}`), ptr.To(metav1.Now())
	another.FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{}}`)
	g.Expect(Own(us, []metav1.ManagedFieldsEntry{again})).To(Equal([]metav1.ManagedFieldsEntry{ours}), "the time is not kept")
	g.Expect(Own(us, []metav1.ManagedFieldsEntry{again})[0].FieldsV1).
		To(BeIdenticalTo(Own(us, []metav1.ManagedFieldsEntry{ours})[0].FieldsV1), "both share one copy")
	given := metav1.NewFieldsV1(`{"f:spec":{"f:given":{}}}`)
	mine := metav1.ManagedFieldsEntry{Manager: string(us), Operation: metav1.ManagedFieldsOperationApply, FieldsV1: given}
	g.Expect(Own(us, []metav1.ManagedFieldsEntry{mine})[0].FieldsV1).
		NotTo(BeIdenticalTo(given), "a copy, because the caller may change its own")
	g.Expect(Own(us, []metav1.ManagedFieldsEntry{another})).To(Equal([]metav1.ManagedFieldsEntry{another}))

	for _, obj := range []client.Object{pod(), &unstructured.Unstructured{Object: map[string]any{}}} {
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{updated, status, theirs, ours})
		_, err := KeepOwn(us)(obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj.GetManagedFields()).To(Equal([]metav1.ManagedFieldsEntry{ours}))
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{updated, theirs})
		_, err = KeepOwn(us)(obj)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(obj.GetManagedFields()).To(BeEmpty())
	}

	kept, err := KeepOwn(us)("not an object")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept).To(Equal("not an object"))
}
