// Package network makes the addresses of simulated hosts reachable, at which no process of this machine listens. It is
// an HTTP proxy (CONNECT) for other processes, and dials for this process. A host can be cut off: then connections to
// it get no answer.
package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// ErrUnreachable is the error of a dial to an address without a server.
var ErrUnreachable = errors.New("connection refused: no such server in the network of the hosts")

// Network knows what serves under which address.
type Network struct {
	// OnCut is called for each host that is cut off; nil: no call. Set it before the first Cut.
	OnCut func(host string)

	listener net.Listener
	socket   string
	server   *http.Server

	mu      sync.Mutex
	servers map[string]*server
	// cuts are the hosts that are cut off, each until its channel is closed.
	cuts map[string]chan struct{}
}

// server is where what is attached to an address really listens.
type server struct{ at string }

// New starts a network in which nothing can be reached yet. It runs until Close. Its proxy serves at a port and at a Unix socket.
func New(ctx context.Context, socket string) (*Network, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the network of the hosts: %w", err)
	}
	local, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("cannot listen for the network of the hosts: %w", err)
	}
	n := &Network{listener: listener, socket: socket, servers: map[string]*server{}, cuts: map[string]chan struct{}{}}
	n.server = &http.Server{
		Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // the client gets the error
	}
	for _, l := range []net.Listener{listener, local} {
		go func() {
			// It ends when it is closed.
			_ = n.server.Serve(l)
		}()
	}
	return n, nil
}

// Close ends the network. Nothing is held up by it any more.
func (n *Network) Close() {
	_ = n.server.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	for host, cut := range n.cuts {
		delete(n.cuts, host)
		close(cut)
	}
}

// ProxyURL is the proxy through which another process reaches the network from a host; empty: from outside.
func (n *Network) ProxyURL(host string) string {
	proxy := url.URL{Scheme: "http", Host: n.listener.Addr().String()}
	if host != "" {
		proxy.User = url.User(host)
	}
	return proxy.String()
}

// Socket is the proxy for a client that takes no other: kube-apiserver ends with a nil pointer for one without TLS at a port (v1.36.3).
func (n *Network) Socket() string { return n.socket }

// Attach lets what listens on this machine be reached under an address (host and port) of the network, until detach.
func (n *Network) Attach(address, at string) (detach func()) {
	s := &server{at: at}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.servers[address] = s
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		// Another may have taken the address meanwhile.
		if n.servers[address] == s {
			delete(n.servers, address)
		}
	}
}

// Dial connects to an address of the network.
func (n *Network) Dial(ctx context.Context, address string) (net.Conn, error) {
	return n.dial(ctx, "", address)
}

// dial connects from a host, or from outside, to an address. Where one of both hosts is cut off, there is no answer before ctx ends.
func (n *Network) dial(ctx context.Context, from, address string) (net.Conn, error) {
	to, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("cannot dial %s: %w", address, err)
	}
	path := path{network: n, hosts: []string{from, to}}
	if !path.open(ctx.Done()) {
		return nil, fmt.Errorf("cannot dial %s: %w", address, context.Cause(ctx))
	}
	n.mu.Lock()
	s := n.servers[address]
	n.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("cannot dial %s: %w", address, ErrUnreachable)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.at)
	if err != nil {
		return nil, err
	}
	return &pathConn{Conn: conn, path: path, closed: make(chan struct{})}, nil
}

// connect serves one request of a proxy's client.
func (n *Network) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	upstream, err := n.dial(r.Context(), clientOf(r), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer upstream.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	Join(conn, buffered, upstream)
}

// clientOf is the host that a request of a proxy's client comes from, see [Network.ProxyURL].
func clientOf(r *http.Request) string {
	proxied := http.Request{Header: http.Header{"Authorization": r.Header.Values("Proxy-Authorization")}}
	host, _, _ := proxied.BasicAuth()
	return host
}

// Join copies between two connections until one of them ends; from is what is read in place of one.
func Join(one net.Conn, from io.Reader, other io.ReadWriteCloser) {
	done := make(chan struct{}, 2)
	flow := func(to io.Writer, from io.Reader) {
		// Any error ends the connection.
		_, _ = io.Copy(to, from)
		done <- struct{}{}
	}
	go flow(other, from)
	go flow(one, other)
	<-done
	_ = one.Close()
	_ = other.Close()
	<-done
}
