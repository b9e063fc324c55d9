package hosts

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// installedAgain is the cause of the loss of a node that another installation overwrites.
const installedAgain = "installed again"

// Loss is the end of an installed node whose server was used for another purpose: its disk was wiped, or is not
// booted any more.
type Loss struct {
	// Host is the name of the host, Key the key of its BareMetalHost; empty for an unmanaged host.
	Host string
	Key  types.NamespacedName
	// Node is the name of its Node; empty if it had not registered one. Cluster is namespace and name of the
	// ClusterDeployment that it was installed for.
	Node    string
	Cluster types.NamespacedName
	// Again is true if the host was installed again over the node. Otherwise it was provisioned again or
	// deprovisioned. How is the cause in words.
	Again bool
	How   string
	Time  time.Time
}

// String describes the loss in one line.
func (l Loss) String() string {
	return fmt.Sprintf("host %s, Node %q of cluster %s: %s at %s", l.Host, l.Node, l.Cluster, l.How, l.Time.Format(time.TimeOnly))
}

// Losses returns the installed nodes that were lost with the disk of the host, oldest first.
func (h *Host) Losses() []Loss {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.losses)
}

// recordLoss records that the node on the disk, if one exists, is lost. It is called before the installation of a host
// is removed.
func (h *Host) recordLoss(how string) {
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
