// Package streams is the client's side of HTTP/2 for connections that are silent most of the time: a few requests without a body, whose answers go on for hours.
// net/http keeps one goroutine for each of them, and whoever reads another, with buffers and stacks that are never used again; here one goroutine reads for all,
// and passes on what comes. Framing and headers are those of golang.org/x/net/http2, dialling, proxies and TLS those of net/http.
package streams

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// writeTime is how long a frame may take to be taken off our hands; a connection that takes longer is broken.
	writeTime = 10 * time.Second
	// smallFrame is the size in bytes from which on the buffer that a frame was read into is not kept for the next one.
	smallFrame = 2 << 10
	// frameSize is the size in bytes of the largest frame that every server takes.
	frameSize = 16 << 10
	// headerListSize is what the headers of an answer may have at most, in bytes.
	headerListSize = 64 << 10
	// credit is after how many bytes the server is told that it may send more, of the 64 KiB that it may send unasked.
	credit = 16 << 10
)

// ErrEnded is what requests fail with on a connection that has ended.
var ErrEnded = errors.New("the connection has ended")

// Conn is a connection to a server. Its requests have no body.
type Conn struct {
	conn *tls.Conn

	// mu is for writes, and what follows.
	mu      sync.Mutex
	writer  *http2.Framer
	streams map[uint32]*stream
	// next is the number of the next stream, most how many there may be at a time.
	next, most uint32
	pings      map[[8]byte]chan struct{}
	pinged     uint64
	// received is what came since the server was told that it may send more, in bytes.
	received int
	err      error
}

func start(conn *tls.Conn) *Conn {
	c := &Conn{conn: conn, writer: http2.NewFramer(conn, nil), streams: map[uint32]*stream{}, pings: map[[8]byte]chan struct{}{}, next: 1, most: 100}
	c.mu.Lock()
	defer c.mu.Unlock()
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

// Ping asks the server for a sign of life.
func (c *Conn) Ping(ctx context.Context) error {
	answered := make(chan struct{})
	var data [8]byte
	c.mu.Lock()
	c.pinged++
	binary.BigEndian.PutUint64(data[:], c.pinged)
	c.pings[data] = answered
	c.write(func() error { return c.writer.WritePing(false, data) })
	err := c.err
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pings, data)
	}()
	if err != nil {
		return err
	}
	select {
	case <-answered:
	case <-ctx.Done():
		return fmt.Errorf("no answer to a ping: %w", ctx.Err())
	}
	return c.Err()
}

// Close ends the connection, and all that is asked on it.
func (c *Conn) Close() { c.end(ErrEnded) }

// Err is why the connection has ended; nil as long as it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
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

// fail ends the connection; the caller holds the lock.
func (c *Conn) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	_ = c.conn.NetConn().Close() // TLS would wait until its farewell is taken
	for id, s := range c.streams {
		delete(c.streams, id)
		s.end(err)
	}
	for data, answered := range c.pings {
		delete(c.pings, data)
		close(answered)
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
			c.end(fmt.Errorf("%w: %w", ErrEnded, err))
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
	reader.MaxHeaderListSize = headerListSize
	return reader
}

// take handles a frame. An error ends the connection.
func (c *Conn) take(frame http2.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[frame.Header().StreamID]
	switch f := frame.(type) {
	case *http2.MetaHeadersFrame:
		if s != nil {
			s.headers(f)
			c.finish(s, f.StreamEnded(), io.EOF)
		}
	case *http2.DataFrame:
		c.takeData(s, f)
	case *http2.RSTStreamFrame:
		c.finish(s, s != nil, http2.StreamError{StreamID: f.StreamID, Code: f.ErrCode})
	case *http2.SettingsFrame:
		c.takeSettings(f)
	case *http2.PingFrame:
		c.takePing(f)
	case *http2.GoAwayFrame:
		return http2.GoAwayError{LastStreamID: f.LastStreamID, ErrCode: f.ErrCode}
	}
	return nil
}

func (c *Conn) takeData(s *stream, f *http2.DataFrame) {
	size := int(f.Length)
	if c.received += size; c.received >= credit {
		c.write(func() error { return c.writer.WriteWindowUpdate(0, uint32(c.received)) }) //nolint:gosec // of one connection's window
		c.received = 0
	}
	if s == nil {
		return
	}
	s.data(f.Data())
	if s.received += size; s.received >= credit && !f.StreamEnded() {
		c.write(func() error { return c.writer.WriteWindowUpdate(s.id, uint32(s.received)) }) //nolint:gosec // of one stream's window
		s.received = 0
	}
	c.finish(s, f.StreamEnded(), io.EOF)
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
	} else if answered := c.pings[f.Data]; answered != nil {
		delete(c.pings, f.Data)
		close(answered)
	}
}

// finish forgets a stream that has ended. The caller holds the lock.
func (c *Conn) finish(s *stream, ended bool, err error) {
	if ended {
		delete(c.streams, s.id)
		s.end(err)
	}
}

// reset ends a stream from our side.
func (c *Conn) reset(id uint32, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[id]; s != nil {
		c.write(func() error { return c.writer.WriteRSTStream(id, http2.ErrCodeCancel) })
		c.finish(s, true, err)
	}
}
