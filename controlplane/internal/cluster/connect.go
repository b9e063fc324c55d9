package cluster

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster/conn"
)

// ErrNotConnected is returned for a cluster without a connection.
var ErrNotConnected = errors.New("the workload cluster is not connected")

// Connect calls a function that makes requests to a cluster, which must be connected. The requests have a
// common time limit.
func (c *Clusters) Connect(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, *conn.Conn) error) error {
	return c.connect(ctx, cluster, func(ctx context.Context, _ *connection, remote *conn.Conn) error { return requests(ctx, remote) })
}

// connect is like Connect, and passes the connection that the requests use.
func (c *Clusters) connect(
	ctx context.Context, cluster client.ObjectKey, requests func(context.Context, *connection, *conn.Conn) error,
) error {
	known, access, err := c.connected(cluster)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	err = access.Connect(ctx, func(ctx context.Context, remote *conn.Conn) error { return requests(ctx, known, remote) })
	if apierrors.IsUnauthorized(err) {
		known.requestVisit() // watches continue, but new requests with these credentials fail
	}
	return err
}

// connected returns the connection to a cluster, or ErrNotConnected.
func (c *Clusters) connected(cluster client.ObjectKey) (*connection, *conn.Access, error) {
	known := c.lookup(cluster)
	if known == nil {
		return nil, nil, ErrNotConnected
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.access == nil || !known.connected {
		return nil, nil, ErrNotConnected
	}
	return known, known.access, nil
}

// EtcdServes reports whether etcd serves the API server of a cluster, which must be connected. See
// [conn.Access.EtcdServes].
func (c *Clusters) EtcdServes(ctx context.Context, cluster client.ObjectKey) (bool, error) {
	_, access, err := c.connected(cluster)
	if err != nil {
		return false, err
	}
	return access.EtcdServes(ctx), nil
}
