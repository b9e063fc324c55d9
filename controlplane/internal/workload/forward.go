package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	clientportforward "k8s.io/client-go/tools/portforward"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forwardPing is how often a port-forward tells that it is still there.
const forwardPing = 5 * time.Second

// forward opens a connection to a port of a Pod, through the API server.
func (a *access) forward(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
	// The API server may take a connection and then wait for a kubelet that is away: what it says too late is dropped.
	opened := make(chan httpstream.Connection)
	failed := make(chan error)
	go func() {
		connection, err := a.upgrade(ctx, pod)
		if err != nil {
			select {
			case failed <- err:
			case <-ctx.Done():
			}
			return
		}
		select {
		case opened <- connection:
		case <-ctx.Done():
			_ = connection.Close() // nobody uses it
		}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot forward a port of Pod %s: %w", pod, ctx.Err())
	case err := <-failed:
		return nil, fmt.Errorf("cannot forward a port of Pod %s: %w", pod, err)
	case connection := <-opened:
		stream, err := streamTo(connection, port)
		if err != nil {
			return nil, fmt.Errorf("cannot forward port %d of Pod %s: %w", port, pod, errors.Join(err, connection.Close()))
		}
		return &forwarded{Stream: stream, connection: connection}, nil
	}
}

// upgrade makes a request a connection with streams: in a WebSocket, as API servers prefer since Kubernetes 1.31, else as SPDY.
func (a *access) upgrade(ctx context.Context, pod client.ObjectKey) (httpstream.Connection, error) {
	base, _, err := rest.DefaultServerUrlFor(a.config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	at := base.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	connection, err := a.upgradeToWebSocket(ctx, at)
	if httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) {
		connection, err = a.upgradeToSPDY(ctx, at)
	}
	return connection, err
}

func (a *access) upgradeToWebSocket(ctx context.Context, at *url.URL) (httpstream.Connection, error) {
	upgrader := &websocket.RoundTripper{TLSConfig: a.certificates.Clone(), Proxier: a.proxy()}
	authenticated, err := rest.HTTPWrappersForConfig(a.config, upgrader)
	if err != nil {
		return nil, RefusedError("its credentials cannot be used")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	connection, err := websocket.Negotiate(authenticated, upgrader, request, portforward.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	return spdy.NewClientConnectionWithPings(clientportforward.NewTunnelingConnection("client", connection), forwardPing)
}

func (a *access) upgradeToSPDY(ctx context.Context, at *url.URL) (httpstream.Connection, error) {
	upgrader, err := spdy.NewRoundTripperWithConfig(spdy.RoundTripperConfig{TLS: a.certificates.Clone(), Proxier: a.proxy(), PingPeriod: forwardPing})
	if err != nil {
		return nil, err
	}
	authenticated, err := rest.HTTPWrappersForConfig(a.config, upgrader)
	if err != nil {
		return nil, RefusedError("its credentials cannot be used")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), nil)
	if err != nil {
		return nil, err
	}
	connection, _, err := clientspdy.Negotiate(upgrader, &http.Client{Transport: authenticated}, request, portforward.PortForwardV1Name)
	return connection, err
}

// streamTo opens the streams of one port. The one for errors is not read: what fails ends the other, too.
func streamTo(connection httpstream.Connection, port int) (httpstream.Stream, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	if err := problems.Close(); err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	return connection.CreateStream(headers)
}

// forwarded is a port of a Pod as a connection. Its deadlines are those of the contexts of who uses it, at whose end it is closed.
type forwarded struct {
	httpstream.Stream

	connection httpstream.Connection
}

// Close implements net.Conn.
func (f *forwarded) Close() error { return errors.Join(f.Stream.Reset(), f.connection.Close()) }

// LocalAddr implements net.Conn.
func (f *forwarded) LocalAddr() net.Addr { return portForward{} }

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr { return portForward{} }

// SetDeadline implements net.Conn.
func (f *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (f *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }

// portForward is the address of both ends of one.
type portForward struct{}

// Network implements net.Addr.
func (portForward) Network() string { return "tcp" }

func (portForward) String() string { return "port-forward" }
