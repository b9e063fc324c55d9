package cluster

import (
	"context"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Conn is the way into a cluster for what is read and done there on demand.
type Conn struct {
	client.Client
	// Forwards opens connections to ports of Pods, through the API server. They end with the door.
	Forwards func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error)
}

// Connect makes requests to a cluster, which must be connected. They have some time, and the door closes when they are made.
func (c *Clusters) Connect(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, *Conn) error) error {
	return c.through(ctx, cluster, func(ctx context.Context, connection client.Client, access *access) error {
		return requests(ctx, &Conn{Client: connection, Forwards: access.forwardUntil(ctx)})
	})
}

// EtcdServes reports whether the etcd of a cluster, which must be connected, serves its API server. Without quorum the API server goes on to tell its version and to keep
// watches, as if all were well, but takes no writes, and many reads hang. One that does not let itself be asked is taken to be served.
func (c *Clusters) EtcdServes(ctx context.Context, cluster client.ObjectKey) (bool, error) {
	_, access, err := c.connected(cluster)
	if err != nil {
		return false, err
	}
	return access.etcdServes(ctx), nil
}

// etcdServes asks over the lasting connection: when that is gone, the probe notices.
func (a *access) etcdServes(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := a.lasting.Get().AbsPath("/readyz/etcd").DoRaw(ctx)
	return !apierrors.IsInternalError(err)
}

// forwardUntil is forward for those who do not wait for what they close, or cannot.
func (a *access) forwardUntil(over context.Context) func(context.Context, client.ObjectKey, int) (net.Conn, error) {
	return func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
		conn, err := a.forward(ctx, pod, port)
		if err == nil {
			context.AfterFunc(over, func() { _ = conn.Close() })
		}
		return conn, err
	}
}
