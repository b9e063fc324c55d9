package objects

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// The watch may report the deletion of a Node after a Node with its name was created again.
func TestReplacedNodeIsNotRemoved(t *testing.T) {
	g := NewWithT(t)
	s := NewState(clock.RealClock{})
	s.nodes.Put(workload.Node{Name: "n0", UID: "new"})
	removed := Event{Type: watch.Deleted}
	removed.Object.Metadata.Name = "n0"
	for uid, left := range map[types.UID]int{"old": 1, "new": 0} {
		removed.Object.Metadata.UID = uid
		put, err := nodes.ReadChange(t.Context(), Cluster{Node: s.Node}, removed)
		g.Expect(err).NotTo(HaveOccurred())
		s.nodes = nodeList{{Name: "n0", UID: "new"}}
		put(s)
		g.Expect(s.nodes).To(HaveLen(left))
	}
}
