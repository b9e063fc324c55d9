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
	// target is not zero while a revision is on its way to the node.
	current, target int32
	since           time.Time
}

// advance makes a revision of new content, and takes it one step further. One node after the other gets it, as the schema of etcds has it: a new node is known before a
// revision is on its way to it. A node that is off holds the others up.
func (r *rollout) advance(now time.Time, content string, nodes []string, runs func(node string) bool, takes time.Duration) {
	if content != r.content {
		r.content = content
		r.latest++
	}
	if r.follow(nodes) {
		return
	}
	for _, name := range nodes {
		n := r.nodes[name]
		switch {
		case n.target == 0:
			continue
		case n.target != r.latest:
			n.target, n.since = r.latest, now
		case runs(name) && now.Sub(n.since) >= takes:
			n.current, n.target = n.target, 0
		}
		return
	}
	for _, name := range nodes {
		if n := r.nodes[name]; n.current != r.latest {
			n.target, n.since = r.latest, now
			return
		}
	}
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

// settled tells whether every node has the latest revision.
func (r *rollout) settled() bool {
	for _, n := range r.nodes {
		if n.current != r.latest || n.target != 0 {
			return false
		}
	}
	return true
}
