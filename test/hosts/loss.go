package hosts

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// installedAgain is how a node is lost that another installation is written over.
const installedAgain = "installed again"

// Loss is the end of an installed node whose server was taken for something else: whatever was on its disk is gone, or
// nobody boots it any more.
type Loss struct {
	// Host is the name of the host, Key that of its BareMetalHost; empty for a host that is not managed.
	Host string
	Key  types.NamespacedName
	// Node is the name of the Node that it registered, empty before that; Cluster is namespace and name of the
	// ClusterDeployment that it was installed for.
	Node    string
	Cluster types.NamespacedName
	// Again is true where the host was installed once more over the node; it was provisioned again or deprovisioned
	// otherwise. How says so, for people.
	Again bool
	How   string
	Time  time.Time
}

// String is a line that tells of the loss.
func (l Loss) String() string {
	return fmt.Sprintf("host %s, Node %q of cluster %s: %s at %s", l.Host, l.Node, l.Cluster, l.How, l.Time.Format(time.TimeOnly))
}

// Losses returns the installed nodes that were lost with the disk of the host, oldest first.
func (h *Host) Losses() []Loss {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.losses)
}

// lose records that the node on the disk is lost, if there is one: whoever takes an installation from a host calls it before.
func (h *Host) lose(how string) {
	h.mu.Lock()
	inst := h.installation
	if inst == nil || !inst.written {
		h.mu.Unlock()
		return
	}
	loss := Loss{
		Host: h.name, Key: h.key, Node: inst.node, Cluster: inst.cluster.key, Again: how == installedAgain,
		How: how, Time: time.Now(),
	}
	h.losses = append(h.losses, loss)
	h.mu.Unlock()
	h.log.Info("an installed node lost its disk", "node", loss.Node, "cluster", loss.Cluster, "how", how)
	if h.rack.options.Lost != nil {
		h.rack.options.Lost(h.rack.ctx, loss)
	}
}
