package reconcile

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestRefresherTouchesObjectsThatStayUnchanged(t *testing.T) {
	g := NewWithT(t)
	const annotation = "example.com/refresh"
	clock := testingclock.NewFakeClock(time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "a", UID: "a"}}
	c := fake.NewClientBuilder().WithObjects(object).Build()
	refresher := NewRefresher(c, "test", annotation, clock)
	refresh := func(state string, wanted time.Duration) string {
		t.Helper()
		delay, err := refresher.Refresh(t.Context(), object, state)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(delay).To(Equal(wanted))
		stored := &corev1.ConfigMap{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), stored)).To(Succeed())
		return stored.Annotations[annotation]
	}

	g.Expect(refresh("discovering", 3*time.Minute)).To(BeEmpty(), "the wait begins")
	clock.Step(2 * time.Minute)
	g.Expect(refresh("discovering", time.Minute)).To(BeEmpty())
	g.Expect(refresh("known", 3*time.Minute)).To(BeEmpty(), "another state begins another wait")
	clock.Step(time.Minute)
	g.Expect(refresh("discovering", 6*time.Minute)).To(Equal("2026-11-29T01:03:00Z"))
	clock.Step(5 * time.Minute)
	g.Expect(refresh("discovering", time.Minute)).To(Equal("2026-11-29T01:03:00Z"), "the delay doubles")
	clock.Step(time.Minute)
	g.Expect(refresh("discovering", 12*time.Minute)).To(Equal("2026-11-29T01:09:00Z"))
	g.Expect(object.Annotations).To(BeEmpty(), "the object may be that of the cache")

	clock.Step(12 * time.Minute)
	g.Expect(c.Delete(t.Context(), object.DeepCopy())).To(Succeed())
	_, err := refresher.Refresh(t.Context(), object, "discovering")
	g.Expect(err).NotTo(HaveOccurred(), "an object that was deleted meanwhile is no error")
}
