package cluster

import (
	"context"

	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
)

// pools are the MachineConfigPools, which show why Nodes are not updated. They are needed only during an
// upgrade, and while Nodes lag behind.
var pools = resource{
	name: "MachineConfigPools", path: "/apis/" + machineconfigurationv1.GroupVersion.String() + "/machineconfigpools",
	demand: (*connection).needsPools, onlyIfNeeded: true,
	read: readPools,
}

// needsPools reports whether the state of pools is needed. The caller holds the lock.
func (c *connection) needsPools() bool {
	released := c.released()
	return c.poolsNeeded || released != nil && released.Upgrading != ""
}

// resumePools reports whether the cluster must be visited for its pools. The caller holds the lock.
func (c *connection) resumePools(neededBefore bool) bool {
	if neededBefore || c.watching == nil || !c.needsPools() {
		return false
	}
	c.resume()
	return true
}

// RequirePools sets whether the MachineConfigPools of a cluster are needed although it is not being upgraded.
func (c *Clusters) RequirePools(cluster client.ObjectKey, needed bool) {
	conn := c.lookup(cluster)
	if conn == nil {
		return
	}
	conn.mu.Lock()
	neededBefore := conn.needsPools()
	conn.poolsNeeded = needed
	begins := conn.resumePools(neededBefore)
	conn.mu.Unlock()
	if begins {
		conn.requestVisit()
	}
}

func readPools(ctx context.Context, c client.Client) (string, func(*connection), error) {
	version, found, err := objects.ReadPools(ctx, c)
	return version, func(conn *connection) { conn.pools = found }, err
}
