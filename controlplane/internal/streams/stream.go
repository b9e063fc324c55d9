package streams

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

// hopByHop are headers of HTTP/1.1 that mean nothing here.
var hopByHop = map[string]bool{"connection": true, "host": true, "keep-alive": true, "proxy-connection": true, "te": true, "transfer-encoding": true, "upgrade": true}

// Follow passes on the body of an answer instead of reading it: take is called with what came and what will come, until err says why it ended, which is io.EOF when
// all was sent. It must not wait, nor keep the data. Once the body is closed it is not called any more, but for a call that runs. The context of the request counts no
// more, and is not kept: it may end. Follow returns false for bodies that are not of a [Conn], and does not read them.
func Follow(body io.Reader, take func(data []byte, err error)) (followed bool) {
	s, followed := body.(*stream)
	if followed {
		s.follow(take)
	}
	return followed
}

// stream is one request, and the body of its answer.
type stream struct {
	conn *Conn
	id   uint32
	// window is how many bytes the server may still send, read how many were read since it got credit for them. The lock of the connection guards both.
	window, read int
	// answered gets the response, or is closed when there will be none; nil: it got it.
	answered chan<- *http.Response

	mu sync.Mutex
	// forget ends the watch for the end of the request's context; nil: it has ended, and nothing of the request is kept.
	forget  func() bool
	arrived sync.Cond
	buffer  bytes.Buffer
	err     error
	take    func([]byte, error)
}

// RoundTrip makes a request without a body. That its URL is of the server is up to the caller.
func (c *Conn) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil && req.Body != http.NoBody {
		return nil, errors.Join(errors.New("a connection for streams takes no request with a body"), req.Body.Close())
	}
	answered := make(chan *http.Response, 1)
	s := &stream{conn: c, answered: answered, window: window}
	s.arrived.L = &s.mu
	if err := c.open(s, req); err != nil {
		return nil, err
	}
	response := <-answered // also when the context ends
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
	case c.err != nil || c.going != nil:
		return cmp.Or(c.err, c.going)
	case uint32(len(c.streams)) >= c.most: //nolint:gosec // a handful
		return fmt.Errorf("the server allows no more than %s at a time", english.Plural(int(c.most), "request", ""))
	case len(headers) > frameSize:
		return fmt.Errorf("the headers of the request are larger than %d bytes", frameSize)
	}
	s.id = c.id
	c.id += 2
	c.streams[s.id] = s
	ctx := req.Context()
	s.forget = context.AfterFunc(ctx, func() { c.reset(s.id, ctx.Err()) })
	c.write(func() error {
		return c.writer.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: headers, EndStream: true, EndHeaders: true})
	})
	c.writer = http2.NewFramer(c.conn, nil) // it would keep the headers
	return c.err
}

// encode writes the headers of a request. None is to be remembered, at either end.
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

// headers takes in those of the answer; what comes before them (100 Continue), or after the body, says nothing.
func (s *stream) headers(f *http2.MetaHeadersFrame) {
	status, err := strconv.Atoi(f.PseudoValue("status"))
	if err != nil || status < http.StatusOK || s.answered == nil {
		return
	}
	header := http.Header{}
	for _, field := range f.RegularFields() {
		header.Add(textproto.CanonicalMIMEHeaderKey(field.Name), field.Value)
	}
	s.answered <- &http.Response{
		StatusCode: status, Status: strconv.Itoa(status) + " " + http.StatusText(status), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: s, ContentLength: -1,
	}
	s.answered = nil
}

// data takes in a part of the body, and returns how much of it waits to be read.
func (s *stream) data(part []byte) (waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
	case s.take != nil:
		s.take(part, nil)
	default:
		s.buffer.Write(part)
		s.arrived.Broadcast()
		return len(part)
	}
	return 0
}

// end is called once, when nothing more will come. The caller holds the lock of the connection, as that of headers does.
func (s *stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach()
	s.err = err
	s.arrived.Broadcast()
	if s.take != nil {
		s.take(nil, err)
	}
	if s.answered != nil {
		close(s.answered)
		s.answered = nil
	}
}

// detach makes the context of the request count no more; the caller holds the lock.
func (s *stream) detach() {
	if s.forget != nil {
		s.forget()
		s.forget = nil
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
	n, err := s.next(p)
	s.credit(n)
	return n, err
}

// credit is for what was read; the caller holds no lock.
func (s *stream) credit(read int) {
	if read > 0 {
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		s.conn.credit(s, read)
	}
}

func (s *stream) next(p []byte) (int, error) {
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

func (s *stream) follow(take func([]byte, error)) { s.credit(s.handOver(take)) }

// handOver returns how many bytes had come.
func (s *stream) handOver(take func([]byte, error)) (came int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.detach()
	if came = s.buffer.Len(); came > 0 {
		take(s.buffer.Bytes(), nil)
		s.buffer = bytes.Buffer{}
	}
	if s.err != nil {
		take(nil, s.err)
		return came
	}
	s.take = take
	return came
}

// Close ends the request, if it has not ended.
func (s *stream) Close() error {
	s.mu.Lock()
	s.take = nil
	s.mu.Unlock()
	s.conn.reset(s.id, http.ErrBodyReadAfterClose)
	return nil
}
