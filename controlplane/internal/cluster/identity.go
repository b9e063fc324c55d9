package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/objects"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
)

// Identify reads the identity of a cluster, which must be connected. It is called once, if the hub does not
// have the identity.
func (c *Clusters) Identify(ctx context.Context, cluster client.ObjectKey) (workload.Identity, error) {
	var identity workload.Identity
	err := c.Connect(ctx, cluster, func(ctx context.Context, remote *conn.Conn) (err error) {
		identity, err = objects.Identify(ctx, remote)
		return err
	})
	return identity, err
}
