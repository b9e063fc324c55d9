package http2conn

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/net/http2"
)

// Transport makes all requests over one connection. Only requests of [AllowOpen] open a connection, if none
// exists or it has ended. Other requests then fail with [ErrEnded], so that clients that wait for the next
// connection do not each open one. If the server does not support HTTP/2 over TLS, requests use the
// http.Transport of Dial.
type Transport struct {
	// Dial returns a transport that opens one connection. With HTTP/2 only its connection is kept.
	Dial func() *http.Transport
	// Times of the connections.
	Times Times

	mu    sync.Mutex
	conn  *Conn
	http1 *http.Transport
	// former are connections that the server closes gracefully. They accept no requests, but some of their
	// requests still run.
	former []*Conn
}

type allowOpen struct{}

// AllowOpen marks the context of a request that may open a connection. Such requests must not be concurrent.
func AllowOpen(ctx context.Context) context.Context { return context.WithValue(ctx, allowOpen{}, true) }

// RoundTrip makes a request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	conn, plain := t.conn, t.http1
	t.mu.Unlock()
	switch {
	case conn != nil && conn.usable():
		return conn.RoundTrip(req)
	case plain != nil:
		return plain.RoundTrip(req)
	case req.Context().Value(allowOpen{}) == nil:
		return nil, ErrEnded
	}
	return t.open(req)
}

// open makes a request over another connection.
func (t *Transport) open(req *http.Request) (*http.Response, error) {
	dial := t.Dial()
	dial.TLSClientConfig.NextProtos = []string{http2.NextProtoTLS, "http/1.1"}
	opened := false
	dial.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{
		http2.NextProtoTLS: func(_ string, conn *tls.Conn) http.RoundTripper {
			c := start(conn, t.Times)
			t.mu.Lock()
			defer t.mu.Unlock()
			if t.http1 != dial && req.Context().Err() != nil { // the request has ended, and there may be another connection
				c.Close()
				return c
			}
			t.replace(c, nil)
			opened = true
			return c
		},
	}
	response, err := dial.RoundTrip(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !opened {
		t.replace(nil, dial)
	}
	return response, err
}

// replace uses another connection from now on. The caller holds the lock.
func (t *Transport) replace(conn *Conn, http1 *http.Transport) {
	t.former = slices.DeleteFunc(append(t.former, t.conn), func(c *Conn) bool { return c == nil || c.Err() != nil })
	t.conn, t.http1 = conn, http1
}

// Broken reports whether there is no usable HTTP/2 connection: it accepts no more requests, or the server does
// not support HTTP/2.
func (t *Transport) Broken() bool {
	conn := t.Conn()
	return conn == nil || !conn.usable()
}

// CloseIdle ends the idle connections to a server that does not support HTTP/2. The next request opens
// another.
func (t *Transport) CloseIdle() {
	t.mu.Lock()
	plain := t.http1
	t.mu.Unlock()
	if plain != nil {
		plain.CloseIdleConnections()
	}
}

// Conn returns the latest connection. It is nil before the first, and if the server does not support HTTP/2.
func (t *Transport) Conn() *Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn
}

// Close ends the connection, and former connections. The next request opens another.
func (t *Transport) Close() {
	t.mu.Lock()
	conn, plain, former := t.conn, t.http1, t.former
	t.http1, t.former = nil, nil
	t.mu.Unlock()
	for _, c := range append(former, conn) {
		if c != nil {
			c.Close()
		}
	}
	if plain != nil {
		plain.CloseIdleConnections()
	}
}
