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
			g.Expect(targets).To(BeNumerically("<=", 1), "one Node at a time")
		}
	}

	now.safe = false
	steps("first", 3, "a", "b")
	g.Expect(r.latest).To(BeZero(), "no revision is created while it is not safe")
	g.Expect(r.settled()).To(BeFalse(), "not settled without a revision")
	now.safe, r.nodes = true, map[string]*nodeRevision{}
	steps("first", 1, "a", "b")
	g.Expect(*r.nodes["a"]).To(BeZero(), "a new Node has no revision and no target")
	steps("first", 4, "a", "b")
	g.Expect(r.settled()).To(BeTrue())
	g.Expect(r.latest).To(BeEquivalentTo(1))
	g.Expect(restarted).To(BeEmpty(), "a member starts with the first revision of its Node")

	now.blocked = true
	steps("blocked", 10, "a", "b")
	g.Expect(r.nodes["a"].target).To(BeEquivalentTo(2), "the first Node has a target while the rollout is blocked")
	g.Expect(restarted).To(BeEmpty(), "no member restarts")
	now.blocked = false
	steps("blocked", 10, "a", "b")
	g.Expect(restarted).To(Equal([]string{"a", "b"}), "one Node after the other")
	g.Expect(r.settled()).To(BeTrue())

	off["a"] = true
	steps("second", 10, "a", "b")
	g.Expect(r.settled()).To(BeFalse(), "a Node that is off blocks the others")
	g.Expect(r.nodes["b"].current).To(BeEquivalentTo(2))
	steps("third", 10, "a", "b")
	g.Expect(r.nodes["a"].target).To(BeEquivalentTo(4), "a newer revision replaces the target")

	steps("third", 3, "b")
	g.Expect(r.settled()).To(BeTrue(), "a deleted Node blocks no other Node")
	g.Expect(r.nodes["b"].current).To(BeEquivalentTo(4))
}
