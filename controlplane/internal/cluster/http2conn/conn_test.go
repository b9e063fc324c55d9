package http2conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

var usual = Times{Silence: time.Minute, Answer: time.Minute, Clock: clock.RealClock{}}

// client is a client of a test server.
type client struct {
	*WithT
	*http.Client
	t         *testing.T
	server    *httptest.Server
	transport *Transport
	dials     int
	proxy     func(*http.Request) (*url.URL, error)
}

func newClient(t *testing.T, http2Too bool, serve http.HandlerFunc, prepare ...func(*httptest.Server)) *client {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	server.EnableHTTP2 = http2Too
	for _, change := range prepare {
		change(server)
	}
	server.StartTLS()
	c := &client{WithT: NewWithT(t), t: t, server: server}
	c.transport = &Transport{Dial: func() *http.Transport {
		c.dials++
		authorities := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs //nolint:forcetypeassert // httptest's
		return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}, Proxy: c.proxy}
	}, Times: usual}
	c.Client = &http.Client{Transport: c.transport}
	t.Cleanup(func() {
		c.transport.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return c
}

func (c *client) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(AllowOpen(ctx), http.MethodGet, c.server.URL+path, nil)
	c.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("X-Test", "value")
	req.Header.Set("Connection", "keep-alive")
	return c.Do(req)
}

func (c *client) read(path string) string {
	resp, err := c.get(c.t.Context(), path)
	c.Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	c.Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// taken records the calls of a follower.
type taken struct {
	mu   sync.Mutex
	data bytes.Buffer
	err  error
	ends int
}

func (f *taken) take(data []byte, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data.Write(data)
	if err != nil {
		f.err, f.ends = err, f.ends+1
	}
}

func (f *taken) text() string { f.mu.Lock(); defer f.mu.Unlock(); return f.data.String() }
func (f *taken) ended() error { f.mu.Lock(); defer f.mu.Unlock(); return f.err }

func TestRequests(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 5<<16)
	c := newClient(t, true, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = io.WriteString(w, large)
		case "/missing":
			w.Header().Set("X-Answer", r.Header.Get("X-Test"))
			w.Header().Set("Trailer", "X-Late")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "nothing here")
			w.Header().Set("X-Late", "1")
		default:
			_, _ = fmt.Fprint(w, r.Proto, " ", r.Host, " ", r.URL.RequestURI(), " ", r.Header)
		}
	})
	c.Expect(c.read("/a?b=c")).To(SatisfyAll(HavePrefix("HTTP/2.0 "+c.server.Listener.Addr().String()+" /a?b=c "),
		ContainSubstring("X-Test:[value]"), Not(ContainSubstring("Connection"))))
	c.Expect(c.read("/large")).To(Equal(large), "larger than the initial window")
	resp, err := c.get(t.Context(), "/missing")
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(resp.Body.Close()).To(Succeed())
	c.Expect(resp.StatusCode).To(Equal(http.StatusNotFound))
	c.Expect(resp.Header.Get("X-Answer")).To(Equal("value"))
	for range 20 { // the window of the connection limits all streams together
		c.Expect(c.read("/large")).To(HaveLen(len(large)))
	}
	c.Expect(c.dials).To(Equal(1), "one connection for all requests")
	c.Expect(c.transport.Conn().streams).To(BeEmpty())

	_, err = c.Post(c.server.URL, "text/plain", strings.NewReader("x")) //nolint:bodyclose // ends with its connection
	c.Expect(err).To(MatchError(ContainSubstring("no request with a body")))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.server.URL, nil)
	c.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("Authorization", "Bearer "+strings.Repeat("~", frameSize))
	_, err = c.Do(req) //nolint:bodyclose // ends with its connection
	c.Expect(err).To(MatchError(ContainSubstring("larger than 16384 bytes")))
}

// endless responds with lines until the request ends.
func endless(lines <-chan string, ended chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/watch" {
			return
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // HTTP
		for {
			select {
			case line, more := <-lines:
				if !more {
					return
				}
				_, _ = io.WriteString(w, line)
				w.(http.Flusher).Flush() //nolint:forcetypeassert // HTTP
			case <-r.Context().Done():
				if ended != nil {
					close(ended)
				}
				return
			}
		}
	}
}

func TestFollow(t *testing.T) {
	lines := make(chan string, 2)
	c := newClient(t, true, endless(lines, nil))
	lines <- "early "
	resp, err := c.get(t.Context(), "/watch") //nolint:bodyclose // ends with its connection
	c.Expect(err).NotTo(HaveOccurred())
	opened := c.transport.Conn()
	c.Eventually(func() int {
		s := opened.streams[1]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.buffer.Len()
	}).Should(Equal(6))
	got := &taken{}
	Follow(resp.Body, got.take)
	c.Expect(got.text()).To(Equal("early "))
	lines <- strings.Repeat("x", 1<<20)
	c.Eventually(func() int { return len(got.text()) }).Should(Equal(6 + 1<<20))
	c.Expect(got.ended()).NotTo(HaveOccurred())
	close(lines)
	c.Eventually(got.ended).Should(MatchError(io.EOF))
	c.Expect(got.ends).To(Equal(1))

	late := &taken{}
	Follow(resp.Body, late.take)
	c.Expect(late.ended()).To(MatchError(io.EOF), "the body had ended before")
}

// A silent request needs no goroutine.
func TestGoroutines(t *testing.T) {
	c := newClient(t, true, endless(nil, nil))
	c.read("/")
	before := runtime.NumGoroutine()
	for range 50 {
		resp, err := c.get(t.Context(), "/watch") //nolint:bodyclose // with its connection
		c.Expect(err).NotTo(HaveOccurred())
		Follow(resp.Body, func([]byte, error) {})
	}
	c.Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", before+50), "goroutines of the server")
}

func TestRequestsEndWithTheirContext(t *testing.T) {
	ended := make(chan struct{})
	c := newClient(t, true, endless(nil, ended))
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.get(ctx, "/watch") //nolint:bodyclose // it ends with its context
	c.Expect(err).NotTo(HaveOccurred())
	cancel()
	_, err = io.ReadAll(resp.Body)
	c.Expect(err).To(MatchError(context.Canceled))
	c.Eventually(ended).Should(BeClosed(), "the server is notified")
	c.Expect(c.transport.Conn().Err()).NotTo(HaveOccurred(), "the connection continues")

	over, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	c.server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err = c.get(over, "/silent") //nolint:bodyclose // ends with its connection
	c.Expect(err).To(MatchError(context.DeadlineExceeded), "before the response")
}

// A followed body lasts for hours. The context of its request is not kept so long.
func TestFollowEndsWithBody(t *testing.T) {
	lines, ended := make(chan string), make(chan struct{})
	c := newClient(t, true, endless(lines, ended))
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := c.get(ctx, "/watch")
	c.Expect(err).NotTo(HaveOccurred())
	got := &taken{}
	Follow(resp.Body, got.take)
	c.Expect(resp.Body.(*stream).stopContext).To(BeNil(), "it refers to the context") //nolint:forcetypeassert // a panic fails the test
	cancel()
	lines <- "more"
	c.Eventually(got.text).Should(Equal("more"))
	c.Expect(resp.Body.Close()).To(Succeed())
	c.Eventually(ended).Should(BeClosed())
	c.Expect(got.ended()).NotTo(HaveOccurred())
	_, err = resp.Body.Read(make([]byte, 1))
	c.Expect(err).To(MatchError(http.ErrBodyReadAfterClose))
}

func TestNextConnection(t *testing.T) {
	c := newClient(t, true, func(http.ResponseWriter, *http.Request) {})
	c.read("/")
	c.transport.Close()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/", nil)
	_, err := c.transport.Conn().RoundTrip(req) //nolint:bodyclose // no response
	c.Expect(err).To(MatchError(ErrEnded))
	c.Expect(c.transport.Broken()).To(BeTrue())
	req = httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.server.URL, nil)
	_, err = c.transport.RoundTrip(req) //nolint:bodyclose // no response
	c.Expect(err).To(MatchError(ErrEnded), "the request may not open a connection")
	c.read("/")
	c.Expect(c.dials).To(Equal(2))
	c.Expect(c.transport.Conn().Err()).NotTo(HaveOccurred())
}

// pipe connects a client to a server that the test implements.
func pipe(t *testing.T, times Times) (*Conn, *http2.Framer) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	config := server.TLS.Clone()
	server.Close()
	config.NextProtos = []string{"h2"}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	here, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	there, err := listener.Accept()
	g.Expect(err).NotTo(HaveOccurred())
	conn := tls.Client(here, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	played := tls.Server(there, config)
	handshake := make(chan error, 1)
	go func() { handshake <- played.HandshakeContext(t.Context()) }()
	g.Expect(conn.HandshakeContext(t.Context())).To(Succeed())
	g.Expect(<-handshake).To(Succeed())
	preface := make(chan error, 1)
	framer := http2.NewFramer(played, played)
	go func() {
		_, err := io.ReadFull(played, make([]byte, len(http2.ClientPreface)))
		if err == nil {
			_, err = framer.ReadFrame()
		}
		preface <- err
	}()
	c := start(conn, times)
	t.Cleanup(c.Close)
	g.Expect(<-preface).To(Succeed())
	return c, framer
}

func TestSilentServer(t *testing.T) {
	g := NewWithT(t)
	clk := testingclock.NewFakePassiveClock(time.Now())
	c, framer := pipe(t, Times{Silence: 20 * time.Millisecond, Answer: 2 * time.Second, Clock: clk})
	answer := make(chan bool)
	var pings atomic.Int32
	go func() {
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				return
			}
			ping, ok := frame.(*http2.PingFrame)
			if !ok {
				continue
			}
			pings.Add(1)
			if <-answer {
				_ = framer.WritePing(true, ping.Data)
			}
		}
	}()
	for range 3 {
		c.mu.Lock()
		clk.SetTime(clk.Now().Add(time.Hour))
		c.mu.Unlock()
		answer <- true
		g.Eventually(c.LastReceived).Should(BeTemporally("==", clk.Now()))
	}
	g.Expect(c.Err()).NotTo(HaveOccurred())
	answer <- false
	g.Eventually(c.Err, time.Minute).Should(MatchError(ErrSilent))
	g.Expect(pings.Load()).To(BeEquivalentTo(4))
	g.Expect(c.LastReceived()).To(BeTemporally("==", clk.Now()))
}

func TestServerFrames(t *testing.T) {
	g := NewWithT(t)
	c, framer := pipe(t, usual)
	request := func() <-chan error {
		failed := make(chan error, 1)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/", nil)
		g.Expect(err).NotTo(HaveOccurred())
		go func() {
			_, err := c.RoundTrip(req) //nolint:bodyclose // no response
			failed <- err
		}()
		return failed
	}
	first := request()
	next := func() http2.Frame {
		frame, err := framer.ReadFrame()
		g.Expect(err).NotTo(HaveOccurred())
		return frame
	}
	g.Expect(next()).To(BeAssignableToTypeOf(&http2.HeadersFrame{}))
	g.Expect(framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})).To(Succeed())
	settings, ok := next().(*http2.SettingsFrame)
	g.Expect(ok && settings.IsAck()).To(BeTrue())
	g.Expect(framer.WritePing(false, [8]byte{7})).To(Succeed())
	ping, ok := next().(*http2.PingFrame)
	g.Expect(ok && ping.IsAck() && ping.Data == [8]byte{7}).To(BeTrue())

	g.Eventually(request()).Should(Receive(MatchError(ContainSubstring("no more than 1 request at"))))

	g.Expect(framer.WriteRSTStream(1, http2.ErrCodeRefusedStream)).To(Succeed())
	g.Eventually(first).Should(Receive(MatchError(ContainSubstring("REFUSED_STREAM"))))
	g.Expect(framer.WriteData(1, true, []byte("late"))).To(Succeed(), "the stream has ended")
	second := request()
	g.Expect(next()).To(BeAssignableToTypeOf(&http2.HeadersFrame{}))
	framer.AllowIllegalWrites = true
	g.Expect(framer.WriteWindowUpdate(3, 0)).To(Succeed())
	g.Eventually(second).Should(Receive(MatchError(ContainSubstring("PROTOCOL_ERROR"))))
	g.Expect(next()).To(BeAssignableToTypeOf(&http2.RSTStreamFrame{}))
	g.Expect(c.Err()).NotTo(HaveOccurred(), "an invalid response affects only its request")

	third := request()
	g.Expect(next()).To(BeAssignableToTypeOf(&http2.HeadersFrame{}))
	g.Expect(framer.WriteGoAway(5, http2.ErrCodeNo, nil)).To(Succeed())
	g.Eventually(c.usable).Should(BeFalse())
	g.Eventually(request()).Should(Receive(MatchError(ErrEnded)))
	g.Expect(c.Err()).NotTo(HaveOccurred())
	g.Expect(third).NotTo(Receive(), "the server may respond to accepted requests")
	g.Expect(framer.WriteRSTStream(5, http2.ErrCodeRefusedStream)).To(Succeed())
	g.Eventually(third).Should(Receive(MatchError(ContainSubstring("REFUSED_STREAM"))))
	g.Eventually(c.Err).Should(MatchError(ErrEnded))
	g.Expect(c.Err()).To(MatchError(ContainSubstring("the server ends the connection after stream 5: NO_ERROR")))
}

// An API server that is about to stop behaves so.
func TestGracefulClose(t *testing.T) {
	c := newClient(t, true, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "the last")
	})
	for range 20 {
		c.Expect(c.read("/")).To(Equal("the last"))
	}
	c.Eventually(c.transport.Conn().Err).Should(MatchError(ErrEnded))
}

// A followed body may last for hours on a connection that is closed gracefully, with outdated credentials.
func TestFormerConnectionsEndWithTheTransport(t *testing.T) {
	watch := endless(nil, nil)
	c := newClient(t, true, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			watch(w, r)
			return
		}
		w.Header().Set("Connection", "close")
	})
	resp, err := c.get(t.Context(), "/watch") //nolint:bodyclose // ends with its connection
	c.Expect(err).NotTo(HaveOccurred())
	got := &taken{}
	Follow(resp.Body, got.take)
	for range 3 {
		c.read("/")
		c.Eventually(c.transport.Broken).Should(BeTrue())
	}
	c.Expect(c.dials).To(Equal(3))
	c.Expect(c.transport.former).To(HaveLen(1), "the other connections have ended")
	c.Expect(got.ended()).NotTo(HaveOccurred())
	c.transport.Close()
	c.Eventually(got.ended).Should(MatchError(ErrEnded))
}

// A server that stops sends frames that end the connection while they are handled.
func TestFailureWhileFramesAreHandled(t *testing.T) {
	g := NewWithT(t)
	c, framer := pipe(t, usual)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/", nil)
	g.Expect(err).NotTo(HaveOccurred())
	failed := make(chan error, 1)
	go func() {
		_, err := c.RoundTrip(req) //nolint:bodyclose // no response
		failed <- err
	}()
	_, err = framer.ReadFrame()
	g.Expect(err).NotTo(HaveOccurred())
	c.mu.Lock()
	s := c.streams[1]
	c.fail(ErrSilent)
	c.finish(s, true, io.EOF)
	c.mu.Unlock()
	g.Expect(s.failure()).To(MatchError(ErrSilent))
	g.Eventually(failed).Should(Receive(MatchError(ErrSilent)))
}

// A request on a connection that was not known to be broken may be repeated on another.
func TestRequestOnBrokenConnection(t *testing.T) {
	g := NewWithT(t)
	c, _ := pipe(t, usual)
	g.Expect(c.conn.CloseWrite()).To(Succeed())
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/", nil)
	_, err := c.RoundTrip(req) //nolint:bodyclose // no response
	g.Expect(err).To(MatchError(ErrEnded))
	g.Expect(c.Err()).To(MatchError(ErrEnded))
}

// A server without HTTP/2 temporarily replaces the server.
func TestServerChangesProtocol(t *testing.T) {
	var http1 atomic.Bool
	c := newClient(t, true, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }, func(s *httptest.Server) {
		s.TLS = &tls.Config{}
		s.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			config := s.TLS.Clone()
			config.GetConfigForClient = nil
			if http1.Load() {
				config.NextProtos = []string{"http/1.1"}
			}
			return config, nil
		}
	})
	c.Expect(c.read("/")).To(Equal("HTTP/2.0"))
	http1.Store(true)
	c.transport.Close()
	c.Expect(c.read("/")).To(Equal("HTTP/1.1"))
	c.Expect(c.transport.Broken()).To(BeTrue(), "watches are not possible")
	c.Expect(c.transport.Conn()).To(BeNil())
	http1.Store(false)
	c.server.CloseClientConnections()
	c.Eventually(func() string { return c.read("/") }).Should(Equal("HTTP/2.0"))
	c.Expect(c.transport.Broken()).To(BeFalse())
	c.Expect(c.read("/")).To(Equal("HTTP/2.0"))
}

func TestBrokenConnectionEndsRequests(t *testing.T) {
	c := newClient(t, true, endless(nil, nil))
	resp, err := c.get(t.Context(), "/watch") //nolint:bodyclose // ends with its connection
	c.Expect(err).NotTo(HaveOccurred())
	got := &taken{}
	Follow(resp.Body, got.take)
	c.server.CloseClientConnections()
	c.Eventually(got.ended).Should(MatchError(ErrEnded))
	c.Expect(c.transport.Conn().Err()).To(MatchError(ErrEnded))
}

func TestServerWithoutHTTP2(t *testing.T) {
	c := newClient(t, false, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	c.Expect(c.read("/")).To(Equal("HTTP/1.1"))
	resp, err := c.get(t.Context(), "/")
	c.Expect(err).NotTo(HaveOccurred())
	got := &taken{}
	c.Expect(Follow(resp.Body, got.take)).To(BeFalse())
	c.Expect(io.ReadAll(resp.Body)).To(BeEquivalentTo("HTTP/1.1"))
	c.Expect(resp.Body.Close()).To(Succeed())
	c.Expect(c.dials).To(Equal(1))
	c.Expect(c.transport.Conn()).To(BeNil())
	c.transport.Close()
	c.Expect(c.read("/")).To(Equal("HTTP/1.1"))
	c.Expect(c.dials).To(Equal(2))
}

func TestLateConnectionIsClosed(t *testing.T) {
	slow := make(chan struct{})
	var ended atomic.Bool
	c := newClient(t, true, func(http.ResponseWriter, *http.Request) {}, func(s *httptest.Server) {
		s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			<-slow
			return nil,
				nil
		}} //nolint:nilnil // as it is
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				ended.Store(true)
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.get(ctx, "/") //nolint:bodyclose // no response
	c.Expect(err).To(MatchError(context.DeadlineExceeded))
	c.transport.Close()
	close(slow)
	c.read("/")
	c.Eventually(ended.Load, time.Minute).Should(BeTrue())
	c.Consistently(c.transport.Conn().Err, 50*time.Millisecond).ShouldNot(HaveOccurred(), "it does not replace the current connection")
}

func TestProxy(t *testing.T) {
	c := newClient(t, true, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	var through []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.Method)
		server, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		hijacked, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(hijacked, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(server, hijacked) }()
		go func() { _, _ = io.Copy(hijacked, server) }()
	}))
	defer proxy.Close()
	address, err := url.Parse(proxy.URL)
	c.Expect(err).NotTo(HaveOccurred())
	c.proxy = http.ProxyURL(address)
	c.Expect(c.read("/")).To(Equal("HTTP/2.0"))
	c.Expect(through).To(ConsistOf(http.MethodConnect))
}

// TestWindow fills the window of an unread request. A server that sends more loses its
// connection. A server that waits gets credit for data that is read.
func TestWindow(t *testing.T) {
	for name, tooMuch := range map[string]bool{"waits": false, "sends more": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, framer := pipe(t, usual)
			received := make(chan http2.Frame, 100)
			go func() {
				defer close(received)
				for {
					frame, err := framer.ReadFrame()
					if err != nil {
						return
					}
					if update, ok := frame.(*http2.WindowUpdateFrame); ok && update.StreamID == 1 {
						received <- frame
					}
				}
			}()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/", nil)
			g.Expect(err).NotTo(HaveOccurred())
			opened := make(chan *http.Response, 1)
			go func() {
				response, _ := c.RoundTrip(request) //nolint:bodyclose // below
				opened <- response
			}()
			g.Eventually(func() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.streams) }).Should(Equal(1))
			g.Expect(answer(framer, "200")).To(Succeed())
			response := <-opened
			g.Expect(response).NotTo(BeNil())
			sent := 0
			for ; sent < window; sent += min(frameSize, window-sent) {
				g.Expect(framer.WriteData(1, false, make([]byte, min(frameSize, window-sent)))).To(Succeed())
			}
			if tooMuch {
				g.Expect(framer.WriteData(1, false, []byte("more"))).To(Succeed())
				g.Eventually(c.Err).Should(MatchError(ContainSubstring("more than the 64 KiB")))
				return
			}
			n, err := io.ReadFull(response.Body, make([]byte, window))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(n).To(Equal(window))
			g.Eventually(received).Should(Receive(), "the server gets credit")
			g.Expect(c.Err()).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
		})
	}
}

func TestHeaderLimit(t *testing.T) {
	c := newClient(t, true, func(w http.ResponseWriter, r *http.Request) {
		for i := range map[string]int{"/more": 1000, "/without-end": 2000}[r.URL.Path] { // each counts as 80 bytes in HTTP/2
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 40))
		}
	})
	_, err := c.get(t.Context(), "/more") //nolint:bodyclose // no response
	c.Expect(err).To(MatchError(ContainSubstring("headers of more than 64 KiB")), "above the limit the request ends")
	_, err = c.get(t.Context(), "/without-end") //nolint:bodyclose // no response
	c.Expect(err).To(Or(MatchError(ContainSubstring("headers of more than 64 KiB")), MatchError(ErrEnded)),
		"far above the limit the connection may end")
}
