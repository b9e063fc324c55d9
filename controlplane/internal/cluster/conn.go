package cluster

import (
	"context"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Conn makes requests to a cluster.
type Conn struct {
	client.Client
	// DialPod connects to a port of a Pod through the API server. The connections end when Connect returns.
	DialPod func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error)
}

// Connect calls a function that makes requests to a cluster, which must be connected. The requests have a
// common time limit.
func (c *Clusters) Connect(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, *Conn) error) error {
	return c.callWithAccess(ctx, cluster, func(ctx context.Context, remote client.Client, access *access) error {
		return requests(ctx, &Conn{Client: remote, DialPod: access.dialPodUntil(ctx)})
	})
}

// EtcdServes reports whether etcd serves the API server of a cluster, which must be connected. Without quorum
// the API server still returns its version and keeps watches open, but refuses writes, and many reads hang.
// If the check itself fails, the result is true.
func (c *Clusters) EtcdServes(ctx context.Context, cluster client.ObjectKey) (bool, error) {
	_, access, err := c.connected(cluster)
	if err != nil {
		return false, err
	}
	return access.etcdServes(ctx), nil
}

// etcdServes uses the permanent connection. If that connection has ended, the next probe reports the failure.
func (a *access) etcdServes(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	_, err := a.permanent.Get().AbsPath("/readyz/etcd").DoRaw(ctx)
	return !apierrors.IsInternalError(err)
}

// dialPodUntil returns forward with connections that are closed when the context over ends. etcd's client may
// not close them in time.
func (a *access) dialPodUntil(over context.Context) func(context.Context, client.ObjectKey, int) (net.Conn, error) {
	return func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
		conn, err := a.forward(ctx, pod, port)
		if err == nil {
			context.AfterFunc(over, func() { _ = conn.Close() })
		}
		return conn, err
	}
}
