package etcdoperator

import (
	"maps"
	"slices"
	"time"
)

// rollout is the state of the revisions of the static Pods of etcd on all Nodes.
type rollout struct {
	// content is the content of the latest revision.
	content string
	latest  int32
	nodes   map[string]*nodeRevision
}

type nodeRevision struct {
	// target is not zero while the Node gets a revision. restarted reports whether its member was stopped for the target.
	current, target int32
	restarted       bool
	since           time.Time
}

// circumstances are the inputs of the next step of a rollout.
type circumstances struct {
	now time.Time
	// content is the content of the next revision, which is created only while safe: one member can fail without harm.
	content string
	safe    bool
	// nodes are the names of the control-plane Nodes. runs reports whether the host of a Node runs, ready whether its
	// member is healthy.
	nodes       []string
	runs, ready func(node string) bool
	// takes is the downtime of the member of a Node.
	takes   time.Duration
	blocked bool
}

// advance creates a revision if the content is new, and rolls it out by one step. It returns the Node whose member must
// restart now, if any. One Node after the other gets the revision, as the schema of etcds requires. A new Node has its
// status before it has a target. A Node that is off blocks the following ones.
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

// advance rolls out the target of a Node by one step. A member starts with the first revision of its Node.
func (n *nodeRevision) advance(c circumstances, name string, latest int32) (restart string) {
	switch {
	case n.target != latest:
		n.target, n.restarted, n.since = latest, false, c.now
	case c.blocked || !c.runs(name):
	case n.current != 0 && !n.restarted:
		n.restarted, n.since = true, c.now
		return name
	case c.now.Sub(n.since) >= c.takes && c.ready(name):
		n.current, n.target = n.target, 0
	}
	return ""
}

// follow removes deleted Nodes and adds new ones. It reports whether it added any.
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

// settled reports whether a revision exists and every Node has the latest one.
func (r *rollout) settled() bool {
	for _, n := range r.nodes {
		if n.current != r.latest || n.target != 0 {
			return false
		}
	}
	return r.latest > 0
}
