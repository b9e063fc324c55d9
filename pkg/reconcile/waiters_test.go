package reconcile

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
)

func TestWaitersAreFoundByAnyOfTheirValues(t *testing.T) {
	g := NewWithT(t)
	a, b := types.NamespacedName{Namespace: "lab", Name: "a"}, types.NamespacedName{Namespace: "prod", Name: "b"}
	waiters := NewWaiters()
	waiters.Begin(a, "first", "second")
	waiters.Begin(b, "second")
	g.Expect(waiters.Of("", "first", "second")).To(ConsistOf(a, b), "each config once")
	g.Expect(waiters.Of("prod", "second")).To(ConsistOf(b))
	g.Expect(waiters.Of("prod", "first")).To(BeEmpty(), "of another namespace")

	waiters.Begin(a, "third")
	g.Expect(waiters.Of("", "first")).To(BeEmpty(), "the last values count")
	g.Expect(waiters.Of("", "third")).To(ConsistOf(a))
	waiters.End(a)
	g.Expect(waiters.Of("", "third")).To(BeEmpty())
}
