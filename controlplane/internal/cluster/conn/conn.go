// Package conn connects to the API server of a workload cluster by a kubeconfig. It also connects to ports of Pods through
// that API server, limits what is read of each response, and describes failures without quoting the server.
package conn

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

// Connect calls a function that makes requests, over connections that end with the call.
func (a *Access) Connect(ctx context.Context, requests func(context.Context, *Conn) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return a.Call(func(c client.Client) error { return requests(ctx, &Conn{Client: c, DialPod: a.dialPodUntil(ctx)}) })
}

// EtcdServes reports whether etcd serves the API server. Without quorum the API server still returns its version and
// keeps watches open, but refuses writes, and many reads hang. If the check itself fails, the result is true. The check
// uses the permanent connection: if that connection has ended, the next probe reports the failure.
func (a *Access) EtcdServes(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, ResponseTimeout)
	defer cancel()
	_, err := a.permanent.Get().AbsPath("/readyz/etcd").DoRaw(ctx)
	return !apierrors.IsInternalError(err)
}

// dialPodUntil returns forward with connections that are closed when the context over ends. etcd's client may
// not close them in time.
func (a *Access) dialPodUntil(over context.Context) func(context.Context, client.ObjectKey, int) (net.Conn, error) {
	return func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
		conn, err := a.forward(ctx, pod, port)
		if err == nil {
			context.AfterFunc(over, func() { _ = conn.Close() })
		}
		return conn, err
	}
}
