package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	clientportforward "k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// forwardPing is the interval of pings on a port-forward.
	forwardPing = 5 * time.Second
	// maxErrorBytes limits how much is read of an error response to a port-forward.
	maxErrorBytes = 4096
)

// errNoWebSocket is returned for servers that do not forward ports over WebSockets.
var errNoWebSocket = errors.New("it does not forward ports over WebSockets")

// forward connects to a port of a Pod through the API server. The API server may accept the request, and then
// wait for an unreachable kubelet. When ctx ends, the TCP connection is aborted. This ends all goroutines
// except one: apimachinery waits half a minute for the reply to a stream.
func (a *Access) forward(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	tcp, opened := newTCPConn(ctx), make(chan outcome, 1)
	go func() {
		conn, err := a.openPort(ctx, tcp, pod, port)
		opened <- outcome{conn, err}
	}()
	var done outcome
	select {
	case <-ctx.Done():
		done.err = ctx.Err()
	case done = <-opened:
	}
	if done.err != nil {
		tcp.abort(done.err)
		return nil, fmt.Errorf("cannot forward port %d of Pod %s: %w", port, pod, done.err)
	}
	return done.conn, nil
}

func (a *Access) openPort(ctx context.Context, tcp *tcpConn, pod client.ObjectKey, port int) (net.Conn, error) {
	connection, err := a.upgrade(ctx, tcp, pod)
	if err != nil {
		return nil, err
	}
	return tcp.openStreams(connection, port)
}

// upgrade upgrades a request to a connection with streams: over a WebSocket, as API servers prefer since
// Kubernetes 1.31, else as SPDY.
func (a *Access) upgrade(ctx context.Context, tcp *tcpConn, pod client.ObjectKey) (httpstream.Connection, error) {
	base, _, err := rest.DefaultServerUrlFor(a.config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	at := base.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	connection, err := a.upgradeToWebSocket(ctx, tcp, at)
	if errors.Is(err, errNoWebSocket) {
		connection, err = a.upgradeToSPDY(ctx, tcp, at)
	}
	return connection, err
}

// roundTripper is a function that makes requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// upgradeToWebSocket uses the WebSocket library of client-go itself, in client-go's version. client-go's own dialer
// (client-go/transport/websocket) opens the TCP connection itself: it can neither be aborted nor limited (see tcpConn).
func (a *Access) upgradeToWebSocket(ctx context.Context, tcp *tcpConn, at *url.URL) (httpstream.Connection, error) {
	const protocol = portforward.WebsocketsSPDYTunnelingPortForwardV1
	dialer := websocket.Dialer{
		NetDialContext: tcp.dial, Proxy: a.proxy(), TLSClientConfig: a.certificates.Clone(),
		Subprotocols: []string{protocol},
	}
	var connection *websocket.Conn
	authenticated, err := rest.HTTPWrappersForConfig(a.config, roundTripper(func(request *http.Request) (answer *http.Response, err error) {
		to := *request.URL
		to.Scheme = strings.Replace(to.Scheme, "http", "ws", 1)
		connection, answer, err = dialer.DialContext(request.Context(), to.String(), request.Header)
		if errors.Is(err, websocket.ErrBadHandshake) {
			err = nil // the response explains the failure
		}
		return answer, err
	}))
	if err != nil {
		return nil, RefusedError("its credentials cannot be used")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := authenticated.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if connection != nil && connection.Subprotocol() == protocol {
		return spdy.NewClientConnectionWithPings(clientportforward.NewTunnelingConnection("client", connection), forwardPing)
	}
	explained, refused := refusal(answer)
	if connection != nil || !explained && (answer.StatusCode == http.StatusBadRequest || answer.StatusCode == http.StatusForbidden) {
		// Kubelets before 1.31 respond with 400, because they expect ports as parameters. Without support of the
		// protocol they respond with 403 and an empty body (golang.org/x/net/websocket). An API server explains its
		// refusals.
		return nil, errNoWebSocket
	}
	return nil, refused
}

func (a *Access) upgradeToSPDY(ctx context.Context, tcp *tcpConn, at *url.URL) (httpstream.Connection, error) {
	transport := a.newTransport()
	transport.DialContext, transport.ForceAttemptHTTP2 = tcp.dial, false // HTTP/2 has no upgrades
	authenticated, err := a.httpClient(transport)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(httpstream.HeaderConnection, httpstream.HeaderUpgrade)
	request.Header.Set(httpstream.HeaderUpgrade, spdy.HeaderSpdy31)
	request.Header.Set(httpstream.HeaderProtocolVersion, portforward.PortForwardV1Name)
	answer, err := authenticated.Do(request)
	if err != nil {
		return nil, err
	}
	upgraded, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer func() { _ = answer.Body.Close() }()
		_, refused := refusal(answer)
		return nil, refused
	}
	return spdy.NewClientConnectionWithPings(upgradedConn{ReadWriteCloser: upgraded}, forwardPing)
}

// refusal returns the error in a response that refuses a port-forward. explained is true if the response is a
// Status of the API server itself, not of a kubelet or a proxy.
func refusal(answer *http.Response) (explained bool, refused error) {
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBytes))
	status := &metav1.Status{}
	if err == nil && json.Unmarshal(content, status) == nil && status.Kind == "Status" {
		return true, &apierrors.StatusError{ErrStatus: *status}
	}
	pods := schema.GroupResource{Resource: "pods/portforward"}
	return false, apierrors.NewGenericServerResponse(answer.StatusCode, "get", pods, "", strings.TrimSpace(string(content)), 0, true)
}

// openStreams opens the streams of one port, and returns the connection over them.
func (c *tcpConn) openStreams(connection httpstream.Connection, port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	errorStream, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	c.onAbort(func() { _ = errorStream.Reset() })
	if err := errorStream.Close(); err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	c.onAbort(func() { _ = data.Reset() })
	go c.readErrors(errorStream)
	return &forwarded{Stream: data, tcpConn: c, connection: connection}, nil
}
