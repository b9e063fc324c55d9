package etcdoperator

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestRollout(t *testing.T) {
	g := NewWithT(t)
	off := map[string]bool{}
	runs := func(node string) bool { return !off[node] }
	r := rollout{nodes: map[string]*nodeRevision{}}
	steps := func(content string, n int, nodes ...string) {
		for range n {
			r.advance(time.Now(), content, nodes, runs, 0)
			targets := 0
			for _, n := range r.nodes {
				if n.target != 0 {
					targets++
				}
			}
			g.Expect(targets).To(BeNumerically("<=", 1), "one node at a time")
		}
	}

	steps("first", 1, "a", "b")
	g.Expect(*r.nodes["a"]).To(BeZero(), "a node is known before it gets anything")
	steps("first", 4, "a", "b")
	g.Expect(r.settled()).To(BeTrue())
	g.Expect(r.latest).To(BeEquivalentTo(1))

	off["a"] = true
	steps("second", 10, "a", "b")
	g.Expect(r.settled()).To(BeFalse(), "a node that is off holds the others up")
	g.Expect(r.nodes["b"].current).To(BeEquivalentTo(1))
	steps("third", 10, "a", "b")
	g.Expect(r.nodes["a"].target).To(BeEquivalentTo(3), "what is on its way to a node is replaced by what is newer")

	steps("third", 2, "b")
	g.Expect(r.settled()).To(BeTrue(), "a node that is gone holds nobody up")
	g.Expect(r.nodes["b"].current).To(BeEquivalentTo(3))
}
