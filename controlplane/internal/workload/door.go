package workload

import (
	"context"
	"net"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Door is the way into a cluster for what is read and done there on demand.
type Door struct {
	client.Client
	// Forwards opens connections to ports of Pods, through the API server. They end with the door.
	Forwards func(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error)
}

// Enter makes requests to a cluster, which must be connected. They have some time, and the door closes when they are made.
func (c *Clusters) Enter(ctx context.Context, cluster client.ObjectKey, requests func(context.Context, *Door) error) error {
	return c.through(ctx, cluster, func(ctx context.Context, connection client.Client, access *access) error {
		return requests(ctx, &Door{Client: connection, Forwards: access.forwardUntil(ctx)})
	})
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
