package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/streaming/pkg/httpstream"
)

// closeTime is how long the close of a connection may take.
const closeTime = time.Second

// tcpConn is the TCP connection of a port-forward. The layers above (TLS, a WebSocket, SPDY, its streams)
// wait without limit for a peer that neither reads nor responds, and hold locks meanwhile. Therefore
// everything ends by aborting the TCP connection, which does not wait.
type tcpConn struct {
	lifetime context.Context
	abort    context.CancelCauseFunc
}

// newTCPConn returns a tcpConn that outlives the context.
func newTCPConn(ctx context.Context) *tcpConn {
	lifetime, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	return &tcpConn{lifetime, abort}
}

// dial opens the TCP connection.
func (c *tcpConn) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.onAbort(func() { _ = conn.Close() })
	return &limitedConn{Conn: conn, left: forwardBytes}, nil
}

// forwardBytes limits how much a port-forward may receive. Responses of etcd have some KiB. The limit also
// applies to the headers of the upgrade, which WebSockets do not limit.
const forwardBytes = 32 << 20

// errForward ends a port-forward that receives more.
var errForward = fmt.Errorf("the port-forward received more than %d MiB", forwardBytes>>20)

// limitedConn fails when the limit was read.
type limitedConn struct {
	net.Conn

	left int
}

// Read must not be called concurrently, as for TLS.
func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errForward
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}

// onAbort calls a function when the connection is aborted. It runs in its own goroutine, because it may wait
// for others.
func (c *tcpConn) onAbort(do func()) { context.AfterFunc(c.lifetime, do) }

// readErrors aborts the connection when the peer reports an error. An unread error would block the data after
// it.
func (c *tcpConn) readErrors(errorStream io.Reader) {
	if message, _ := io.ReadAll(io.LimitReader(errorStream, maxErrorBytes)); len(message) > 0 {
		c.abort(errors.New(string(message)))
	}
}

// forwarded is the connection to a port of a Pod.
type forwarded struct {
	httpstream.Stream
	*tcpConn
	portForward

	connection    httpstream.Connection
	reads, writes deadline
	// ended is why the connection was ended locally; nil otherwise.
	ended atomic.Pointer[error]
}

// end closes the streams if possible, and then aborts the TCP connection. API servers log connections that
// end without a close.
func (f *forwarded) end(why error) {
	if f.ended.CompareAndSwap(nil, &why) {
		go func() { _ = errors.Join(f.Reset(), f.connection.Close()) }()
		time.AfterFunc(closeTime, func() { f.abort(why) })
	}
}

// cause returns why an operation failed: the reason for the end of the connection, if it has ended.
func (f *forwarded) cause(err error) error {
	if err == nil {
		return nil
	}
	if why := f.ended.Load(); why != nil {
		return *why
	}
	if f.lifetime.Err() != nil {
		return context.Cause(f.lifetime)
	}
	return err
}

// Read implements net.Conn.
func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.Stream.Read(p)
	return n, f.cause(err)
}

// Write implements net.Conn.
func (f *forwarded) Write(p []byte) (int, error) {
	n, err := f.Stream.Write(p)
	return n, f.cause(err)
}

// Close implements net.Conn. It does not wait.
func (f *forwarded) Close() error {
	f.end(net.ErrClosed)
	return nil
}

// SetDeadline implements net.Conn with one difference: an expired deadline ends the connection within
// closeTime, even if a later deadline is set.
func (f *forwarded) SetDeadline(at time.Time) error {
	return errors.Join(f.SetReadDeadline(at), f.SetWriteDeadline(at))
}

// SetReadDeadline implements net.Conn as SetDeadline does.
func (f *forwarded) SetReadDeadline(at time.Time) error { return f.reads.set(at, f.end) }

// SetWriteDeadline implements net.Conn as SetDeadline does.
func (f *forwarded) SetWriteDeadline(at time.Time) error { return f.writes.set(at, f.end) }

// deadline ends a connection at a point in time.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
}

// set replaces the time. Zero means no deadline.
func (d *deadline) set(at time.Time, end func(error)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() { end(os.ErrDeadlineExceeded) })
	}
	return nil
}

// upgradedConn is the connection of an upgraded HTTP request. SPDY sets no deadlines.
type upgradedConn struct {
	io.ReadWriteCloser
	portForward
}

// SetDeadline implements net.Conn.
func (upgradedConn) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline implements net.Conn.
func (upgradedConn) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline implements net.Conn.
func (upgradedConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// portForward is the address of both ends.
type portForward struct{}

// LocalAddr implements net.Conn.
func (p portForward) LocalAddr() net.Addr { return p }

// RemoteAddr implements net.Conn.
func (p portForward) RemoteAddr() net.Addr { return p }

// Network implements net.Addr.
func (portForward) Network() string { return "tcp" }

func (portForward) String() string { return "port-forward" }
