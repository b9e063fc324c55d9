package streams

import (
	"crypto/tls"
	"net/http"
	"sync"

	"golang.org/x/net/http2"
)

// Transport makes all requests over one connection, which the first of them opens, and the first after its end opens anew. With a server that does not speak HTTP/2 by
// TLS it is as what Dial returns.
type Transport struct {
	// Dial returns what opens a connection. Only the connection is kept of it.
	Dial func() *http.Transport
	// Times of the connections.
	Times Times

	mu    sync.Mutex
	conn  *Conn
	plain *http.Transport
}

// RoundTrip makes a request. Those that may open a connection must follow one another.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	conn, plain := t.conn, t.plain
	t.mu.Unlock()
	switch {
	case conn != nil && conn.Err() == nil:
		return conn.RoundTrip(req)
	case plain != nil:
		return plain.RoundTrip(req)
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
			if req.Context().Err() != nil { // nobody waits for it any more, nor closes it
				c.Close()
			}
			t.conn, opened = c, true
			return c
		},
	}
	response, err := dial.RoundTrip(req)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && !opened {
		t.plain = dial
	}
	return response, err
}

// Conn is the latest connection; nil before the first, and with a server that does not speak HTTP/2.
func (t *Transport) Conn() *Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn
}

// Close ends the connection. The next request opens another.
func (t *Transport) Close() {
	t.mu.Lock()
	conn, plain := t.conn, t.plain
	t.plain = nil
	t.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
	if plain != nil {
		plain.CloseIdleConnections()
	}
}
