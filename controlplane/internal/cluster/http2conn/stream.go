package http2conn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"

	"github.com/dustin/go-humanize/english"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hopByHop are headers of HTTP/1.1 that have no meaning in HTTP/2.
var hopByHop = map[string]bool{
	"connection": true, "host": true, "keep-alive": true, "proxy-connection": true, "te": true,
	"transfer-encoding": true, "upgrade": true,
}

// Follow passes the body of a response to a function instead of reading it. take is called with buffered and
// future data, and with an error at the end, which is io.EOF after all data. It must neither block nor keep
// the data. It is not called after the body is closed, except for a call that is running. The context of the
// request may end: it is ignored and released. Follow returns false for bodies that are not of a [Conn], and
// does not read them.
func Follow(body io.Reader, handle func(data []byte, err error)) (followed bool) {
	s, followed := body.(*stream)
	if followed {
		s.follow(handle)
	}
	return followed
}

// stream is one request, and the body of its response.
type stream struct {
	conn *Conn
	id   uint32
	// window is how many bytes the server may still send. read is how many bytes were read without credit to the
	// server. The lock of the connection guards both.
	window, read int
	// responded receives the response, or is closed if there is none. It is nil after the response.
	responded chan<- *http.Response

	mu sync.Mutex
	// stopContext detaches the stream from the request's context. It is nil afterwards, so that nothing of the
	// request is kept.
	stopContext func() bool
	arrived     sync.Cond
	buffer      bytes.Buffer
	err         error
	handle      func([]byte, error)
}

// RoundTrip makes a request without a body. The caller ensures that the URL belongs to the server.
func (c *Conn) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		return nil, errors.Join(errors.New("an HTTP/2 connection accepts no request with a body"), req.Body.Close())
	}
	answered := make(chan *http.Response, 1)
	s := &stream{conn: c, responded: answered, window: window}
	s.arrived.L = &s.mu
	if err := c.open(s, req); err != nil {
		return nil, err
	}
	response := <-answered // is closed when the context ends
	if response == nil {
		return nil, s.failure()
	}
	response.Request = req
	return response, nil
}

// open sends the headers of a request.
func (c *Conn) open(s *stream, req *http.Request) error {
	headers := encode(req)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.err != nil || c.draining != nil:
		return cmp.Or(c.err, c.draining)
	case uint32(len(c.streams)) >= c.maxStreams: //nolint:gosec // a handful
		return fmt.Errorf("the server allows no more than %s at a time", english.Plural(int(c.maxStreams), "request", ""))
	case len(headers) > frameSize:
		return fmt.Errorf("the headers of the request are larger than %d bytes", frameSize)
	}
	s.id = c.id
	c.id += 2
	c.streams[s.id] = s
	ctx := req.Context()
	s.stopContext = context.AfterFunc(ctx, func() { c.reset(s.id, ctx.Err()) })
	c.write(func() error {
		return c.writer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: headers, EndStream: true, EndHeaders: true})
	})
	c.writer = http2.NewFramer(c.conn, nil) // the former one would keep the headers
	return c.err
}

// encode encodes the headers of a request. They are marked as sensitive, so that neither end remembers them.
func encode(req *http.Request) []byte {
	block := bytes.Buffer{}
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0)
	add := func(name, value string) {
		_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: true}) // into memory
	}
	add(":method", req.Method)
	add(":scheme", req.URL.Scheme)
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	add(":authority", host)
	add(":path", req.URL.RequestURI())
	for name, values := range req.Header {
		if name = strings.ToLower(name); hopByHop[name] {
			continue
		}
		for _, value := range values {
			add(name, value)
		}
	}
	return block.Bytes()
}

// headers handles the headers of the response. Informational headers (100 Continue) and trailers are ignored.
func (s *stream) headers(f *http2.MetaHeadersFrame) {
	status, err := strconv.Atoi(f.PseudoValue("status"))
	if err != nil || status < http.StatusOK || s.responded == nil {
		return
	}
	header := http.Header{}
	for _, field := range f.RegularFields() {
		header.Add(textproto.CanonicalMIMEHeaderKey(field.Name), field.Value)
	}
	s.responded <- &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: s, ContentLength: -1,
	}
	s.responded = nil
}

// data handles a part of the body, and returns how many bytes of it wait to be read.
func (s *stream) data(part []byte) (waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
	case s.handle != nil:
		s.handle(part, nil)
	default:
		s.buffer.Write(part)
		s.arrived.Broadcast()
		return len(part)
	}
	return 0
}

// end is called once, at the end of the stream. As for headers, the caller holds the lock of the connection.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach()
	s.err = err
	s.arrived.Broadcast()
	if s.handle != nil {
		s.handle(nil, err)
	}
	if s.responded != nil {
		close(s.responded)
		s.responded = nil
	}
}

// detach releases the context of the request. The caller holds the lock.
func (s *stream) detach() {
	if s.stopContext != nil {
		s.stopContext()
		s.stopContext = nil
	}
}

func (s *stream) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return s.err
}

// Read waits for data. The server may then send as much again.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.readBuffer(p)
	s.credit(n)
	return n, err
}

// credit permits the server to send more. The caller holds no lock.
func (s *stream) credit(read int) {
	if read > 0 {
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		s.conn.credit(s, read)
	}
}

func (s *stream) readBuffer(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.buffer.Len() == 0 && s.err == nil {
		s.arrived.Wait()
	}
	if s.buffer.Len() > 0 {
		return s.buffer.Read(p)
	}
	return 0, s.err
}

func (s *stream) follow(handle func([]byte, error)) { s.credit(s.handOver(handle)) }

// handOver passes all data to a function from now on, and returns how many bytes were buffered.
func (s *stream) handOver(handle func([]byte, error)) (buffered int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach()
	if buffered = s.buffer.Len(); buffered > 0 {
		handle(s.buffer.Bytes(), nil)
		s.buffer = bytes.Buffer{}
	}
	if s.err != nil {
		handle(nil, s.err)
		return buffered
	}
	s.handle = handle
	return buffered
}

// Close ends the request, if it has not ended.
func (s *stream) Close() error {
	s.mu.Lock()
	s.handle = nil
	s.mu.Unlock()
	s.conn.reset(s.id, http.ErrBodyReadAfterClose)
	return nil
}
