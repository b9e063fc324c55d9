package streams

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/net/http2"
)

// Transport makes all requests over one connection. Those of [MayOpen] open it, when there is none or it has ended; the others fail then with [ErrEnded], so that those who
// wait for the next connection do not each open one. With a server that does not speak HTTP/2 by TLS it is as what Dial returns.
type Transport struct {
	// Dial returns what opens a connection. Only the connection is kept of it.
	Dial func() *http.Transport
	// Times of the connections.
	Times Times

	mu    sync.Mutex
	conn  *Conn
	plain *http.Transport
	// former are connections that take no more requests, on which some go on: the server has said that it goes away.
	former []*Conn
}

type mayOpen struct{}

// MayOpen is for requests that may open a connection. They must follow one another.
func MayOpen(ctx context.Context) context.Context { return context.WithValue(ctx, mayOpen{}, true) }

// RoundTrip makes a request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	conn, plain := t.conn, t.plain
	t.mu.Unlock()
	switch {
	case conn != nil && conn.usable():
		return conn.RoundTrip(req)
	case plain != nil:
		return plain.RoundTrip(req)
	case req.Context().Value(mayOpen{}) == nil:
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
			if t.plain != dial && req.Context().Err() != nil { // nobody waits for it any more; there may be another
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

// replace takes another connection into use; the caller holds the lock.
func (t *Transport) replace(conn *Conn, plain *http.Transport) {
	t.former = slices.DeleteFunc(append(t.former, t.conn), func(c *Conn) bool { return c == nil || c.Err() != nil })
	t.conn, t.plain = conn, plain
}

// Broken reports whether there is no connection for streams: it takes no more requests, or the server does not speak HTTP/2.
func (t *Transport) Broken() bool {
	conn := t.Conn()
	return conn == nil || !conn.usable()
}

// Rest ends the connections to a server that does not speak HTTP/2, unless requests are made on them. The next request opens another.
func (t *Transport) Rest() {
	t.mu.Lock()
	plain := t.plain
	t.mu.Unlock()
	if plain != nil {
		plain.CloseIdleConnections()
	}
}

// Conn is the latest connection; nil before the first, and with a server that does not speak HTTP/2.
func (t *Transport) Conn() *Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn
}

// Close ends the connection, and former ones. The next request opens another.
func (t *Transport) Close() {
	t.mu.Lock()
	conn, plain, former := t.conn, t.plain, t.former
	t.plain, t.former = nil, nil
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
