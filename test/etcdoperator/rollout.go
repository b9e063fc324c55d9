package etcdoperator

import (
	"maps"
	"slices"
	"time"
)

// rollout are the revisions of what the static pods of etcd consist of, and which node has which of them.
type rollout struct {
	// content is what the latest revision was made of.
	content string
	latest  int32
	nodes   map[string]*nodeRevision
}

type nodeRevision struct {
	// target is not zero while a revision is on its way to the node; restarted reports whether the member of the node was ended for it.
	current, target int32
	restarted       bool
	since           time.Time
}

// circumstances are what the next step of a roll-out depends on.
type circumstances struct {
	now time.Time
	// content is what a revision would be made of now. It is made only while it is safe: a member can be away without harm.
	content string
	safe    bool
	// nodes are the names of the control-plane Nodes. runs reports whether the host of one runs, ready whether its member is well.
	nodes       []string
	runs, ready func(node string) bool
	// takes is how long the member of a node is away.
	takes time.Duration
	held  bool
}

// advance makes a revision of new content, and takes it one step further; restart is the node whose member is to be
// ended and started for that, if any. One node after the other gets it, as the schema of etcds has it: a new node is
// known before a revision is on its way to it. A node that is off holds the others up.
func (r *rollout) advance(c circumstances) (restart string) {
	if c.safe && c.content != r.content {
		r.content = c.content
		r.latest++
	}
	if r.follow(c.nodes) {
		return ""
	}
	for _, name := range c.nodes {
		if n := r.nodes[name]; n.target != 0 {
			return n.advance(c, name, r.latest)
		}
	}
	for _, name := range c.nodes {
		if n := r.nodes[name]; n.current != r.latest {
			n.target, n.restarted, n.since = r.latest, false, c.now
			break
		}
	}
	return ""
}

// advance takes what is on its way to a node one step further. The first revision of a node is what its member is started with.
func (n *nodeRevision) advance(c circumstances, name string, latest int32) (restart string) {
	switch {
	case n.target != latest:
		n.target, n.restarted, n.since = latest, false, c.now
	case c.held || !c.runs(name):
	case n.current != 0 && !n.restarted:
		n.restarted, n.since = true, c.now
		return name
	case c.now.Sub(n.since) >= c.takes && c.ready(name):
		n.current, n.target = n.target, 0
	}
	return ""
}

// follow forgets the nodes that are gone, and returns whether there are new ones.
func (r *rollout) follow(nodes []string) (added bool) {
	maps.DeleteFunc(r.nodes, func(name string, _ *nodeRevision) bool { return !slices.Contains(nodes, name) })
	for _, name := range nodes {
		if r.nodes[name] == nil {
			r.nodes[name] = &nodeRevision{}
			added = true
		}
	}
	return added
}

// settled reports whether every node has the latest revision, and there is one.
func (r *rollout) settled() bool {
	for _, n := range r.nodes {
		if n.current != r.latest || n.target != 0 {
			return false
		}
	}
	return r.latest > 0
}
