package apply

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reconcile"
)

// A write would be sent again in each reconcile while the cache lacks it, and would revert the change of another client.
func TestWriterSkipsWritesThatTheCacheLacks(t *testing.T) {
	g := NewWithT(t)
	var answer error
	requests := 0
	c := answering(&answer, &requests)
	clock := testingclock.NewFakeClock(time.Now())
	w := NewWriter(c, c, "test", clock)
	observed := configMap(map[string]string{"a": "1"})
	observed.ResourceVersion = "7"
	apply := func(version, content string) time.Duration {
		again := reconcile.Requeue{}
		seen := observed.DeepCopy()
		seen.ResourceVersion = version
		desired := configMap(map[string]string{"a": content})
		_, err := w.ApplyOnce(t.Context(), &again, w.Applier, Key(desired), desired, seen)
		g.Expect(err).NotTo(HaveOccurred())
		return again.Delay()
	}
	g.Expect(apply("7", "2")).To(BeZero())
	g.Expect(requests).To(Equal(1))
	g.Expect(apply("7", "3")).To(Equal(reconcile.CacheLag), "the cache lacks the last write")
	g.Expect(requests).To(Equal(1))
	g.Expect(apply("8", "3")).To(BeZero(), "the cache has it")
	g.Expect(requests).To(Equal(2))
	clock.Step(reconcile.CacheLag)
	g.Expect(apply("8", "4")).To(BeZero(), "the cache is trusted as it is")
	g.Expect(requests).To(Equal(3))
}

// Several controllers write to a new object at the same time. The cache may show the write of another one first.
func TestWriterSkipsWritesThatTheCacheLacksDespiteForeignWrites(t *testing.T) {
	g := NewWithT(t)
	requests := 0
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Apply: func(_ context.Context, _ client.WithWatch, applied runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			requests++
			applied.(metav1.Object).SetResourceVersion("12") //nolint:forcetypeassert // it is unstructured
			return nil
		},
	})
	w := NewWriter(c, c, "test", testingclock.NewFakeClock(time.Now()))
	apply := func(version string) int {
		desired, seen := configMap(map[string]string{"a": "2"}), configMap(map[string]string{"a": "1"})
		seen.ResourceVersion = version
		_, err := w.ApplyOnce(t.Context(), &reconcile.Requeue{}, w.Applier, Key(desired), desired, seen)
		g.Expect(err).NotTo(HaveOccurred())
		return requests
	}
	g.Expect(apply("10")).To(Equal(1))
	g.Expect(apply("11")).To(Equal(1), "a foreign write that precedes ours")
	g.Expect(apply("13")).To(Equal(2), "a foreign write that reverts ours")
}

// The first write is forced. It must not overwrite a foreign object that the cache does not show yet.
func TestWriterFindsObjectsThatTheCacheLacks(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().Build()
	w := NewWriter(c, c, "test", testingclock.NewFakeClock(time.Now()))
	wanted := configMap(map[string]string{"a": "1"})
	g.Expect(w.Existing(t.Context(), wanted)).To(BeNil())

	g.Expect(c.Create(t.Context(), wanted.DeepCopy())).To(Succeed())
	g.Expect(w.Existing(t.Context(), wanted)).To(HaveField("Name", wanted.Name), "a foreign object")

	w.Recent.Record(Key(wanted), "")
	g.Expect(w.Existing(t.Context(), wanted)).To(BeNil(), "our own object")
}

// Each generation of the reconciled object makes another request.
func TestWriterSpacesRefusedRequests(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().Build()
	clock := testingclock.NewFakeClock(time.Now())
	w := NewWriter(c, c, "test", clock)
	obj := configMap(nil)
	refused := func() time.Duration {
		again := reconcile.Requeue{}
		w.Refused(&again, "write", obj)
		return again.Delay()
	}
	g.Expect(refused()).To(Equal(reconcile.RefusedDelay))
	clock.Step(reconcile.RefusedDelay)
	g.Expect(refused()).To(Equal(2 * reconcile.RefusedDelay))
	obj.Generation++
	g.Expect(refused()).To(Equal(reconcile.RefusedDelay))
	obj.Generation--
	w.Accepted("write", obj)
	g.Expect(refused()).To(Equal(reconcile.RefusedDelay), "the API server accepted the request meanwhile")
}
