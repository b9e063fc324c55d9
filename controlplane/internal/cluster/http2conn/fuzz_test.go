package http2conn

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"k8s.io/utils/clock"
)

// FuzzFrames checks that arbitrary data of a server ends the connection and the request. A response is not
// larger than the sent data.
func FuzzFrames(f *testing.F) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	authority := &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}
	trusting := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone() //nolint:forcetypeassert // httptest's
	trusting.ServerName = "example.com"
	server.Close()
	for _, frames := range []func(*http2.Framer) error{
		func(w *http2.Framer) error {
			return w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		},
		func(w *http2.Framer) error {
			return errors.Join(answer(w, "200"), w.WriteData(1, true, []byte("content")))
		},
		func(w *http2.Framer) error {
			return errors.Join(answer(w, "100"), answer(w, "no number"), w.WriteRSTStream(1, http2.ErrCodeCancel))
		},
		func(w *http2.Framer) error {
			return errors.Join(w.WritePing(false, [8]byte{1}), w.WriteGoAway(1, http2.ErrCodeNo, []byte("later")))
		},
		func(w *http2.Framer) error {
			return errors.Join(answer(w, "200"), w.WriteData(3, false, []byte("another's")))
		},
		func(w *http2.Framer) error { // more than the window
			return errors.Join(answer(w, "200"), w.WriteData(1, false, make([]byte, frameSize)), w.WriteData(1, false, make([]byte, frameSize)),
				w.WriteData(1, false, make([]byte, frameSize)),
				w.WriteData(1, false, make([]byte, frameSize)), w.WriteData(1, true, make([]byte, frameSize)))
		},
	} {
		var sent bytes.Buffer
		if err := frames(http2.NewFramer(&sent, nil)); err != nil {
			f.Fatal(err)
		}
		f.Add(sent.Bytes())
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		g := NewWithT(t)
		ours, theirs := net.Pipe()
		go serveFrames(tls.Server(theirs, authority), sent)
		conn := tls.Client(ours, trusting)
		g.Expect(conn.Handshake()).To(Succeed())
		c := start(conn, Times{Silence: time.Minute, Answer: time.Minute, Clock: clock.RealClock{}})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://example.com/", nil)
		g.Expect(err).NotTo(HaveOccurred())
		if response, err := c.RoundTrip(req); err == nil {
			content, _ := io.ReadAll(response.Body)
			g.Expect(len(content)).To(BeNumerically("<=", len(sent)))
			g.Expect(response.Body.Close()).To(Succeed())
		}
		g.Eventually(c.Err, 10*time.Second).Should(MatchError(ErrEnded))
		g.Expect(ctx.Err()).NotTo(HaveOccurred(), "the connection ended before the timeout")
	})
}

// answer writes the headers of a response to the first request.
func answer(w *http2.Framer, status string) error {
	var block bytes.Buffer
	if err := hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: status}); err != nil {
		return err
	}
	return w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
}

// serveFrames sends data independently of requests, and ends.
func serveFrames(conn *tls.Conn, sent []byte) {
	defer conn.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, conn)
	}()
	_, _ = conn.Write(sent)
	_ = conn.NetConn().Close()
	<-read
}

// FuzzLines checks that the lines do not depend on the parts in which a response arrives.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\n"), uint(1), uint(2))
	f.Add([]byte("a\nbc\n"), uint(3), uint(4))
	f.Add([]byte("\n\na\n\nb"), uint(0), uint(4))
	f.Fuzz(func(t *testing.T, all []byte, first, second uint) {
		if len(all) >= maxPendingLines {
			return
		}
		synctest.Test(t, func(t *testing.T) { expectSameLines(t, all, first, second) })
	})
}

// expectSameLines waits until each part is processed before it pushes the next.
func expectSameLines(t *testing.T, all []byte, first, second uint) {
	t.Helper()
	g := NewWithT(t)
	one, two := min(int(first%(1<<20)), len(all)), min(int(second%(1<<20)), len(all))
	var seen []string
	ended := make(chan error, 1)
	reader := &LineReader{
		Handle: func(line []byte) error { seen = append(seen, string(line)); return nil },
		Done:   func(err error) { ended <- err },
	}
	for _, part := range [][]byte{all[:min(one, two)], all[min(one, two):max(one, two)], all[max(one, two):]} {
		reader.Push(bytes.Clone(part), nil)
		synctest.Wait()
	}
	reader.Push(nil, io.EOF)
	err := <-ended
	var wanted []string
	parts := strings.Split(string(all), "\n")
	for _, line := range parts[:len(parts)-1] {
		if line != "" {
			wanted = append(wanted, line)
		}
	}
	g.Expect(seen).To(Equal(wanted))
	if parts[len(parts)-1] == "" {
		g.Expect(err).To(Equal(io.EOF))
	} else {
		g.Expect(err).To(Equal(io.ErrUnexpectedEOF))
	}
}
