package etcdoperator

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRollout(t *testing.T) {
	g := NewWithT(t)
	off := map[string]bool{}
	runs := func(node string) bool { return !off[node] }
	r := rollout{nodes: map[string]*nodeRevision{}}
	var restarted []string
	now := circumstances{safe: true, runs: runs, ready: runs}
	steps := func(content string, n int, nodes ...string) {
		now.content, now.nodes = content, nodes
		for range n {
			if name := r.advance(now); name != "" {
				restarted = append(restarted, name)
			}
			targets := 0
			for _, n := range r.nodes {
				if n.target != 0 {
					targets++
				}
			}
			g.Expect(targets).To(BeNumerically("<=", 1), "one node at a time")
		}
	}

	now.safe = false
	steps("first", 3, "a", "b")
	g.Expect(r.latest).To(BeZero(), "no revision is made while none is safe")
	g.Expect(r.settled()).To(BeFalse(), "nothing is settled without one")
	now.safe, r.nodes = true, map[string]*nodeRevision{}
	steps("first", 1, "a", "b")
	g.Expect(*r.nodes["a"]).To(BeZero(), "a node is known before it gets anything")
	steps("first", 4, "a", "b")
	g.Expect(r.settled()).To(BeTrue())
	g.Expect(r.latest).To(BeEquivalentTo(1))
	g.Expect(restarted).To(BeEmpty(), "a member is started with the first revision of its node")

	now.held = true
	steps("held", 10, "a", "b")
	g.Expect(r.nodes["a"].target).To(BeEquivalentTo(2), "of a roll-out that is held something is on its way")
	g.Expect(restarted).To(BeEmpty(), "and nothing is away")
	now.held = false
	steps("held", 10, "a", "b")
	g.Expect(restarted).To(Equal([]string{"a", "b"}), "one after the other")
	g.Expect(r.settled()).To(BeTrue())

	off["a"] = true
	steps("second", 10, "a", "b")
	g.Expect(r.settled()).To(BeFalse(), "a node that is off holds the others up")
	g.Expect(r.nodes["b"].current).To(BeEquivalentTo(2))
	steps("third", 10, "a", "b")
	g.Expect(r.nodes["a"].target).To(BeEquivalentTo(4), "what is on its way to a node is replaced by what is newer")

	steps("third", 3, "b")
	g.Expect(r.settled()).To(BeTrue(), "a node that is gone holds nobody up")
	g.Expect(r.nodes["b"].current).To(BeEquivalentTo(4))
}
