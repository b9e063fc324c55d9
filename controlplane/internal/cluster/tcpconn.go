package cluster

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

	"k8s.io/apimachinery/pkg/util/httpstream"
)

// farewell is how long may be taken to tell the other end that a connection is closed.
const farewell = time.Second

// tcpConn is the TCP connection below a port-forward. What stands upon it (TLS, a WebSocket, SPDY, its streams) waits for ever, and holds locks meanwhile, for one who neither
// reads nor answers any more: therefore everything ends by cutting the line, which waits for nobody.
type tcpConn struct {
	life context.Context
	cut  context.CancelCauseFunc
}

// newTCPConn is one that outlives the context in which it is laid.
func newTCPConn(ctx context.Context) *tcpConn {
	life, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	return &tcpConn{life, cut}
}

// dial connects the line.
func (l *tcpConn) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTime, KeepAlive: keepAlive}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.tearDown(func() { _ = conn.Close() })
	return &limitedConn{Conn: conn, left: forwardBytes}, nil
}

// forwardBytes is how much a port-forward may bring: etcd answers with some KiB. It also limits the headers of the upgrade, which a WebSocket reads without a limit.
const forwardBytes = 32 << 20

// errForward ends a port-forward that brings more.
var errForward = fmt.Errorf("the port-forward brought more than %d MiB", forwardBytes>>20)

// limitedConn fails when more was read than it may bring.
type limitedConn struct {
	net.Conn

	left int
}

// Read has one caller at a time, as TLS does.
func (c *limitedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errForward
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}

// tearDown does something when the line is cut, on its own: it may wait for others who are woken at the same time.
func (l *tcpConn) tearDown(do func()) { context.AfterFunc(l.life, do) }

// listen cuts the line when the other end tells of a problem. Unread, it would keep what comes after it from being read.
func (l *tcpConn) listen(problems io.Reader) {
	if told, _ := io.ReadAll(io.LimitReader(problems, largestAnswer)); len(told) > 0 {
		l.cut(errors.New(string(told)))
	}
}

// forwarded is a port of a Pod as a connection.
type forwarded struct {
	httpstream.Stream
	*tcpConn
	portForward

	connection    httpstream.Connection
	reads, writes deadline
	// ended is why it was ended here; nil: it was not.
	ended atomic.Pointer[error]
}

// end tells the other end, if it can be told, and then cuts the line: API servers log what ends untold.
func (f *forwarded) end(why error) {
	if f.ended.CompareAndSwap(nil, &why) {
		go func() { _ = errors.Join(f.Reset(), f.connection.Close()) }()
		time.AfterFunc(farewell, func() { f.cut(why) })
	}
}

// because is why what was done failed: because the connection was ended or the line was cut, if it was.
func (f *forwarded) because(err error) error {
	if err == nil {
		return nil
	}
	if why := f.ended.Load(); why != nil {
		return *why
	}
	if f.life.Err() != nil {
		return context.Cause(f.life)
	}
	return err
}

// Read implements net.Conn.
func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.Stream.Read(p)
	return n, f.because(err)
}

// Write implements net.Conn.
func (f *forwarded) Write(p []byte) (int, error) {
	n, err := f.Stream.Write(p)
	return n, f.because(err)
}

// Close implements net.Conn. It waits for nobody.
func (f *forwarded) Close() error {
	f.end(net.ErrClosed)
	return nil
}

// SetDeadline implements net.Conn, but for one thing: a deadline that has passed ends the connection, within farewell, whatever is set later.
func (f *forwarded) SetDeadline(at time.Time) error {
	return errors.Join(f.SetReadDeadline(at), f.SetWriteDeadline(at))
}

// SetReadDeadline implements net.Conn as SetDeadline does.
func (f *forwarded) SetReadDeadline(at time.Time) error { return f.reads.set(at, f.end) }

// SetWriteDeadline implements net.Conn as SetDeadline does.
func (f *forwarded) SetWriteDeadline(at time.Time) error { return f.writes.set(at, f.end) }

// deadline ends a connection at a time.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
}

// set replaces the time; zero: there is none.
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

// upgradedConn is what an HTTP request was upgraded to, for SPDY, which sets no deadlines.
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

// portForward is the address of both its ends.
type portForward struct{}

// LocalAddr implements net.Conn.
func (p portForward) LocalAddr() net.Addr { return p }

// RemoteAddr implements net.Conn.
func (p portForward) RemoteAddr() net.Addr { return p }

// Network implements net.Addr.
func (portForward) Network() string { return "tcp" }

func (portForward) String() string { return "port-forward" }
