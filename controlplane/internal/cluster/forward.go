package cluster

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
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	clientportforward "k8s.io/client-go/tools/portforward"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// forwardPing is how often a port-forward tells that it is still there.
	forwardPing = 5 * time.Second
	// largestAnswer is how much is read of what an API server says instead of forwarding a port.
	largestAnswer = 4096
)

// errNoWebSocket is the answer of those who forward no ports in WebSockets.
var errNoWebSocket = errors.New("it forwards no ports in WebSockets")

// forward opens a connection to a port of a Pod, through the API server. The API server may take a connection and then wait for a kubelet that is away: when ctx ends,
// the line is cut. What waited for an answer ends with it, but for a goroutine that waits for a stream to be answered: apimachinery gives that half a minute.
func (a *access) forward(ctx context.Context, pod client.ObjectKey, port int) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	l, opened := newTCPConn(ctx), make(chan outcome, 1)
	go func() {
		conn, err := a.open(ctx, l, pod, port)
		opened <- outcome{conn, err}
	}()
	var done outcome
	select {
	case <-ctx.Done():
		done.err = ctx.Err()
	case done = <-opened:
	}
	if done.err != nil {
		l.cut(done.err)
		return nil, fmt.Errorf("cannot forward port %d of Pod %s: %w", port, pod, done.err)
	}
	return done.conn, nil
}

func (a *access) open(ctx context.Context, l *tcpConn, pod client.ObjectKey, port int) (net.Conn, error) {
	connection, err := a.upgrade(ctx, l, pod)
	if err != nil {
		return nil, err
	}
	return l.stream(connection, port)
}

// upgrade makes a request a connection with streams: in a WebSocket, as API servers prefer since Kubernetes 1.31, else as SPDY.
func (a *access) upgrade(ctx context.Context, l *tcpConn, pod client.ObjectKey) (httpstream.Connection, error) {
	base, _, err := rest.DefaultServerUrlFor(a.config)
	if err != nil {
		return nil, fmt.Errorf("cannot use the kubeconfig: %w", err)
	}
	at := base.JoinPath("api", "v1", "namespaces", pod.Namespace, "pods", pod.Name, "portforward")
	connection, err := a.upgradeToWebSocket(ctx, l, at)
	if errors.Is(err, errNoWebSocket) {
		connection, err = a.upgradeToSPDY(ctx, l, at)
	}
	return connection, err
}

// roundTripper is a function that makes requests.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (a *access) upgradeToWebSocket(ctx context.Context, l *tcpConn, at *url.URL) (httpstream.Connection, error) {
	const protocol = portforward.WebsocketsSPDYTunnelingPortForwardV1
	dialer := websocket.Dialer{NetDialContext: l.dial, Proxy: a.proxy(), TLSClientConfig: a.certificates.Clone(), Subprotocols: []string{protocol}}
	var connection *websocket.Conn
	authenticated, err := rest.HTTPWrappersForConfig(a.config, roundTripper(func(request *http.Request) (answer *http.Response, err error) {
		to := *request.URL
		to.Scheme = strings.Replace(to.Scheme, "http", "ws", 1)
		connection, answer, err = dialer.DialContext(request.Context(), to.String(), request.Header)
		if errors.Is(err, websocket.ErrBadHandshake) {
			err = nil // its answer tells more
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
		// Kubelets before 1.31 answer with 400, for they want to be told ports otherwise, or with 403 and nothing, for they do not know the protocol
		// (golang.org/x/net/websocket). What an API server refuses, it explains.
		return nil, errNoWebSocket
	}
	return nil, refused
}

func (a *access) upgradeToSPDY(ctx context.Context, l *tcpConn, at *url.URL) (httpstream.Connection, error) {
	transport := a.dial()
	transport.DialContext, transport.ForceAttemptHTTP2 = l.dial, false // HTTP/2 has no upgrades
	authenticated, err := a.through(transport)
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

// refusal is what an API server says instead of forwarding a port. It is explained when the API server says it by itself, and not somebody behind or before it.
func refusal(answer *http.Response) (explained bool, refused error) {
	said, err := io.ReadAll(io.LimitReader(answer.Body, largestAnswer))
	status := &metav1.Status{}
	if err == nil && json.Unmarshal(said, status) == nil && status.Kind == "Status" {
		return true, &apierrors.StatusError{ErrStatus: *status}
	}
	pods := schema.GroupResource{Resource: "pods/portforward"}
	return false, apierrors.NewGenericServerResponse(answer.StatusCode, "get", pods, "", strings.TrimSpace(string(said)), 0, true)
}

// stream opens the streams of one port, upon which stands the connection to it.
func (l *tcpConn) stream(connection httpstream.Connection, port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	l.tearDown(func() { _ = problems.Reset() })
	if err := problems.Close(); err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	l.tearDown(func() { _ = data.Reset() })
	go l.listen(problems)
	return &forwarded{Stream: data, tcpConn: l, connection: connection}, nil
}
