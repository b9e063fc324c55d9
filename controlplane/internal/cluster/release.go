package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

// RequireReleases sets whether the releases of Nodes are needed although the cluster is not being upgraded.
// Nodes may be updated after the control plane.
func (c *Clusters) RequireReleases(cluster client.ObjectKey, needed bool) {
	conn := c.lookup(cluster)
	if conn == nil {
		return
	}
	conn.mu.Lock()
	begins := needed && !conn.releasesNeeded
	conn.releasesNeeded = needed
	conn.forgetReleases()
	conn.mu.Unlock()
	if begins {
		conn.requestVisit()
	}
}

// readReleases reads the releases of the machine configurations of Nodes, if they are needed. A failed read
// is repeated with the next change.
func (c *connection) readReleases(ctx context.Context, access *conn.Access) {
	c.mu.Lock()
	c.forgetReleases()
	missing := c.configsWithoutRelease()
	c.mu.Unlock()
	if len(missing) == 0 {
		return
	}
	found := map[string]string{}
	err := access.Call(func(c client.Client) error {
		for _, name := range missing {
			config := &metav1.PartialObjectMetadata{}
			config.SetGroupVersionKind(objects.MachineConfigs)
			if err := c.Get(ctx, client.ObjectKey{Name: name}, config); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot read MachineConfig %s of the workload cluster: %w", name, err)
			}
			found[name] = config.Annotations[objects.ReleaseVersionAnnotation]
		}
		return nil
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot read the releases of Nodes of the workload cluster", "Cluster", c.key)
	}
	c.update(func() {
		if c.releases == nil {
			c.releases = map[string]string{}
		}
		maps.Copy(c.releases, found)
	})
}

// needsReleases reports whether the releases of Nodes are needed. The caller holds the lock.
func (c *connection) needsReleases() bool {
	released := c.released()
	return released != nil && (released.Upgrading != "" || c.releasesNeeded)
}

// forgetReleases drops the releases if they are not needed. The caller holds the lock.
func (c *connection) forgetReleases() {
	if !c.needsReleases() {
		c.releases = nil
	}
}

// configsWithoutRelease returns the machine configurations of Nodes that do not have the newest release yet.
// A configuration keeps its name if a release does not change it: its release may change later. The caller
// holds the lock.
func (c *connection) configsWithoutRelease() []string {
	if !c.needsReleases() {
		return nil
	}
	newest := cmp.Or(c.released().Upgrading, c.released().Completed)
	missing := sets.New[string]()
	for _, n := range c.nodes {
		if n.Config != "" && c.releases[n.Config] != newest {
			missing.Insert(n.Config)
		}
	}
	return sets.List(missing)
}
