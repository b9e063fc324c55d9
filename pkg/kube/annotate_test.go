package kube

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// The API server refuses a patch whose UID is not that of the object.
func TestAnnotatePatchesObjectThatWasRead(t *testing.T) {
	g := NewWithT(t)
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "lab", Name: "m", UID: "1", Annotations: map[string]string{"hook": "", "foreign": "1"},
	}}
	var answer error
	var sent string
	c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(obj).Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, err := patch.Data(obj)
			g.Expect(err).NotTo(HaveOccurred())
			sent = string(data)
			if answer != nil {
				return answer
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	annotate := func() error {
		return Annotate(t.Context(), c, obj, map[string]*string{"hook": nil, "mark": ptr.To("2")}, "test")
	}
	g.Expect(annotate()).To(Succeed())
	g.Expect(sent).To(MatchJSON(`{"metadata":{"uid":"1","annotations":{"hook":null,"mark":"2"}}}`))
	g.Expect(obj.Annotations).To(Equal(map[string]string{"foreign": "1", "mark": "2"}), "the response")

	answer = apierrors.NewNotFound(corev1.Resource("configmaps"), "m")
	g.Expect(annotate()).To(Succeed(), "the object is deleted")
	answer = errors.New("no answer")
	g.Expect(annotate()).To(MatchError(ContainSubstring("cannot annotate ConfigMap m: no answer")))
}
