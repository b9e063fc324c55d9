package workload

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A token ends with its Secret; that one is made or labelled is no news.
func TestDeletionsAreNews(t *testing.T) {
	g := NewWithT(t)
	for _, p := range deletions {
		g.Expect(p.Delete(event.DeleteEvent{})).To(BeTrue())
		g.Expect(p.Create(event.CreateEvent{})).To(BeFalse())
		g.Expect(p.Update(event.UpdateEvent{})).To(BeFalse())
	}
}
