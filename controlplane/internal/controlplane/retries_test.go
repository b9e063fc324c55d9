package controlplane

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcdgate"
)

func TestDelayOfRetries(t *testing.T) {
	g := NewWithT(t)
	r, req, other := newRetries(), ctrl.Request{
		NamespacedName: client.ObjectKey{Name: "a"},
	}, ctrl.Request{NamespacedName: client.ObjectKey{Name: "b"}}
	for range 20 {
		r.When(req)
		r.When(other)
	}
	g.Expect(r.When(req)).To(BeNumerically(">", 10*time.Minute), "the request has failed often")
	r.want(req, 20*time.Second)
	g.Expect(r.When(req)).To(Equal(20*time.Second), "but an inspection is due")
	g.Expect(r.When(other)).To(BeNumerically(">", 10*time.Minute), "the inspection is due for another request")
	g.Expect(r.When(req)).To(BeNumerically(">", 10*time.Minute), "the inspection counts once")
	r.want(req, time.Millisecond)
	g.Expect(r.When(req)).To(Equal(etcdgate.InitialDelay), "not at once, because it fails")
	r.want(req, time.Hour)
	g.Expect(r.When(req)).To(BeNumerically("<", time.Hour))
	r.want(req, 20*time.Second)
	r.want(req, 0)
	g.Expect(r.When(req)).To(BeNumerically(">", 10*time.Minute), "no inspection is due any more")
	r.Forget(req)
	r.want(req, 20*time.Second)
	g.Expect(r.When(req)).To(BeNumerically("<", time.Second), "the first failure")
}

// One chain of phases fails, and another waits for etcd.
func TestErrorDoesNotPostponeTheNextInspection(t *testing.T) {
	h, _ := newWaitingHub(t)
	h.cached.Client = interceptor.NewClient(h.cached.Client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // the fake one
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if obj.GetObjectKind().GroupVersionKind().Kind == "Metal3Machine" {
				return errors.New("no such host")
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	req := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: lab, Name: "c1"}}
	result, err := h.r.Reconcile(t.Context(), req)
	h.Expect(err).To(MatchError(ContainSubstring("no such host")))
	h.Expect(result).To(Equal(ctrl.Result{RequeueAfter: etcdgate.InitialDelay}), "a conflict is retried at that time")
	h.Expect(h.etcds.inspections).To(Equal(1))
	for range 20 {
		h.r.retries.TypedRateLimiter.When(req)
	}
	h.Expect(h.r.retries.When(req)).To(Equal(etcdgate.InitialDelay))
}
