// Package streams is the client's side of HTTP/2 for connections that are silent most of the time: a few requests without a body, whose answers go on for hours.
// net/http keeps one goroutine for each of them, and whoever reads another, with buffers and stacks that are never used again; here one goroutine reads for all,
// and passes on what comes. Framing and headers are those of golang.org/x/net/http2, dialling, proxies and TLS those of net/http.
package streams

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// writeTime is how long a frame may take to be taken off our hands; a connection that takes longer is broken.
	writeTime = 10 * time.Second
	// smallFrame is the size in bytes from which on the buffer that a frame was read into is not kept for the next one.
	smallFrame = 2 << 10
	// frameSize is the size in bytes of the largest frame that every server takes, and that we take.
	frameSize = 16 << 10
	// headerListSize is what the headers of an answer may have at most, in bytes.
	headerListSize = 64 << 10
	// spread is by how much silences differ.
	spread = 0.2
	// moments is how many moments there are in a silence at which connections are looked after.
	moments = 30
	// window is how many bytes a server may send on a stream before it gets credit (RFC 9113, 6.9.2), and so how much of an answer waits to be read.
	window = 64<<10 - 1
	// credit is after how many bytes the server is told that it may send more.
	credit = 16 << 10
)

// ErrEnded is what requests fail with on a connection that has ended, ErrSilent on one whose server did not answer any more.
var (
	ErrEnded  = errors.New("the connection has ended")
	ErrSilent = fmt.Errorf("%w: the server is silent", ErrEnded)

	errWindow  = fmt.Errorf("the server sends more than the %d KiB that it may before they are read", (window+1)>>10)
	errHeaders = fmt.Errorf("the server sends headers of more than %d KiB", headerListSize>>10)
)

// Times are how long is waited.
type Times struct {
	// Silence is after how long without a word from the server it is asked for a sign of life, Answer how long it may take to give it. The former differs by a fifth
	// between connections.
	Silence, Answer time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Conn is a connection to a server. Its requests have no body.
type Conn struct {
	conn  *tls.Conn
	times Times
	// heard is when something came last, in nanoseconds since 1970.
	heard atomic.Int64

	// mu is for writes, and what follows.
	mu      sync.Mutex
	writer  *http2.Framer
	streams map[uint32]*stream
	// id is the number of the next stream, most how many there may be at a time.
	id, most uint32
	// received is what came since the server was told that it may send more, in bytes.
	received int
	// err is why the connection has ended, going why it takes no more requests.
	err, going error
	// next calls look, and pinged is true while an answer is due.
	next   *time.Timer
	pinged bool
}

func start(conn *tls.Conn, times Times) *Conn {
	c := &Conn{conn: conn, times: times, writer: http2.NewFramer(conn, nil), streams: map[uint32]*stream{}, id: 1, most: 100}
	c.heard.Store(times.Now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = time.AfterFunc(c.silence(), c.checkLiveness)
	c.write(func() error {
		if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
			return err
		}
		return c.writer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush}, http2.Setting{ID: http2.SettingHeaderTableSize},
			http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: headerListSize})
	})
	go c.read()
	return c
}

// checkLiveness is called when the server was silent for long, or did not answer the ping that it got then.
func (c *Conn) checkLiveness() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	if c.pinged {
		c.fail(ErrSilent)
		return
	}
	c.pinged = true
	c.write(func() error { return c.writer.WritePing(false, [8]byte{}) })
	c.next.Reset(c.times.Answer)
}

// Heard is when the server sent something last.
func (c *Conn) Heard() time.Time {
	return time.Unix(0, c.heard.Load())
}

// Close ends the connection, and all that is asked on it.
func (c *Conn) Close() { c.end(ErrEnded) }

// Err is why the connection has ended; nil as long as it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// usable reports whether the connection takes requests.
func (c *Conn) usable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.going == nil
}

// write makes a write, unless the connection has ended, and ends it when that fails. The caller holds the lock.
func (c *Conn) write(frames func() error) {
	if c.err != nil {
		return
	}
	err := c.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err == nil {
		err = frames()
	}
	if err != nil {
		c.fail(err)
	}
}

func (c *Conn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(err)
}

// fail ends the connection, with an error that is ErrEnded; the caller holds the lock.
func (c *Conn) fail(err error) {
	if c.err != nil {
		return
	}
	if !errors.Is(err, ErrEnded) {
		err = fmt.Errorf("%w: %w", ErrEnded, err)
	}
	c.err = err
	c.next.Stop()
	_ = c.conn.NetConn().Close() // TLS would wait until its farewell is taken
	for id, s := range c.streams {
		delete(c.streams, id)
		s.end(err)
	}
}

// read takes in what the server sends, until the connection ends.
func (c *Conn) read() {
	reader := c.newReader()
	for {
		frame, err := reader.ReadFrame()
		var ofStream http2.StreamError
		switch {
		case errors.As(err, &ofStream):
			c.reset(ofStream.StreamID, ofStream)
			continue
		case err == nil:
			err = c.take(frame)
		}
		if err != nil {
			c.end(err) // unless it has
			return
		}
		if frame.Header().Length > smallFrame {
			reader = c.newReader()
		}
	}
}

func (c *Conn) newReader() *http2.Framer {
	reader := http2.NewFramer(nil, c.conn)
	reader.ReadMetaHeaders = hpack.NewDecoder(0, nil)
	reader.SetMaxReadFrameSize(frameSize)
	reader.MaxHeaderListSize = headerListSize
	return reader
}

// take handles a frame. An error ends the connection.
func (c *Conn) take(frame http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	c.heard.Store(c.times.Now().UnixNano())
	c.pinged = false
	c.next.Reset(c.silence())
	s := c.streams[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		switch {
		case s != nil && f.Truncated:
			c.abandon(s, http2.ErrCodeProtocol, errHeaders)
		case s != nil:
			s.headers(f)
			c.finish(s, f.StreamEnded(), io.EOF)
		}
	case *http2.DataFrame:
		return c.takeData(s, f)
	case *http2.RSTStreamFrame:
		c.finish(s, s != nil, http2.StreamError{StreamID: f.StreamID, Code: f.ErrCode})
	case *http2.SettingsFrame:
		c.takeSettings(f)
	case *http2.PingFrame:
		c.takePing(f)
	case *http2.GoAwayFrame:
		return c.takeGoAway(f)
	}
	return nil
}

// takeGoAway lets the requests come to their end that the server has taken, and ends the connection with the last of them.
func (c *Conn) takeGoAway(f *http2.GoAwayFrame) error {
	goAway := http2.GoAwayError{LastStreamID: f.LastStreamID, ErrCode: f.ErrCode}
	if f.ErrCode != http2.ErrCodeNo {
		return goAway
	}
	c.going = fmt.Errorf("%w: %w", ErrEnded, goAway)
	for id, s := range c.streams {
		c.finish(s, id > f.LastStreamID, c.going)
	}
	if len(c.streams) == 0 {
		c.fail(c.going)
	}
	return nil
}

// takeData takes in a part of an answer. The connection gets its credit at once: one answer that nobody reads must not stop the others. What waits to be read is limited
// by the window of each stream, which gets credit only for what was read. A server that sends beyond the window wants to fill memory: its connection ends.
func (c *Conn) takeData(s *stream, f *http2.DataFrame) error {
	size := int(f.Length)
	if c.received += size; c.received >= credit {
		c.write(func() error { return c.writer.WriteWindowUpdate(0, uint32(c.received)) }) //nolint:gosec // of one connection's window
		c.received = 0
	}
	if s == nil {
		return nil
	}
	if s.window -= size; s.window < 0 {
		return errWindow
	}
	waiting := s.data(f.Data())
	c.finish(s, f.StreamEnded(), io.EOF)
	c.credit(s, size-waiting)
	return nil
}

// credit lets the server send more on a stream, once that is worth a frame. The caller holds the lock.
func (c *Conn) credit(s *stream, read int) {
	if s.read += read; s.read < credit || c.streams[s.id] != s {
		return
	}
	c.write(func() error { return c.writer.WriteWindowUpdate(s.id, uint32(s.read)) }) //nolint:gosec // of one stream's window
	s.window, s.read = s.window+s.read, 0
}

func (c *Conn) takeSettings(f *http2.SettingsFrame) {
	if f.IsAck() {
		return
	}
	if most, told := f.Value(http2.SettingMaxConcurrentStreams); told {
		c.most = most
	}
	c.write(c.writer.WriteSettingsAck)
}

func (c *Conn) takePing(f *http2.PingFrame) {
	if !f.IsAck() {
		c.write(func() error { return c.writer.WritePing(true, f.Data) })
	}
}

// silence is how long one is waited for, not the same for all connections. Its end is one of a few moments: to look after many connections at once takes a tenth of the
// processor time (3,500 of them, in a minute: 0.2 s instead of 1.8).
func (c *Conn) silence() time.Duration {
	now := time.Now()
	return now.Add(wait.Jitter(c.times.Silence, spread)).Truncate(c.times.Silence / moments).Sub(now)
}

// finish forgets a stream that has ended. The caller holds the lock.
func (c *Conn) finish(s *stream, ended bool, err error) {
	if !ended || c.streams[s.id] != s { // when the connection fails, all its streams end
		return
	}
	delete(c.streams, s.id)
	s.end(err)
	if c.going != nil && len(c.streams) == 0 {
		c.fail(c.going)
	}
}

// reset ends a stream from our side.
func (c *Conn) reset(id uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		c.abandon(s, http2.ErrCodeCancel, err)
	}
}

// abandon ends a stream from our side; the caller holds the lock.
func (c *Conn) abandon(s *stream, code http2.ErrCode, err error) {
	c.write(func() error { return c.writer.WriteRSTStream(s.id, code) })
	c.finish(s, true, err)
}
