package network

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestAddressesOfTheNetwork(t *testing.T) {
	g := NewWithT(t)
	n, err := New(t.Context(), filepath.Join(t.TempDir(), "proxy.sock"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(n.Close)
	serve := func(text string) string {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	// Requests like another process: through the proxy, with TLS to the host itself.
	proxy, err := url.Parse(n.ProxyURL(""))
	g.Expect(err).NotTo(HaveOccurred())
	request := func() (string, error) {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.Proxy = http.ProxyURL(proxy)
		transport.TLSClientConfig.InsecureSkipVerify = true // the certificate is not what is tested
		defer transport.CloseIdleConnections()
		answer, err := (&http.Client{Transport: transport}).Get("https://192.168.111.20:10250/")
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}

	_, err = request()
	g.Expect(err).To(MatchError(ContainSubstring("Bad Gateway")), "no server has this address")
	_, err = n.Dial(t.Context(), "192.168.111.20:10250")
	g.Expect(errors.Is(err, ErrUnreachable)).To(BeTrue())

	leave := n.Attach("192.168.111.20:10250", serve("first"))
	g.Expect(request()).To(Equal("first"))
	n.Attach("192.168.111.20:10250", serve("second"))
	leave()
	g.Expect(request()).To(Equal("second"), "an address belongs to who took it last")

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", n.Socket())
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	_, err = io.WriteString(conn, "CONNECT 192.168.111.20:10250 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	g.Expect(err).NotTo(HaveOccurred())
	head := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(conn, head)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(head)).To(Equal("HTTP/1.1 200"), "like kube-apiserver, at the socket")
}

// TestAHostThatIsCutOff tests connections to a host with an echo server, and a connection from the host.
func TestAHostThatIsCutOff(t *testing.T) {
	const address, other, silence = "192.168.111.20:2380", "192.168.111.21:2380", 500 * time.Millisecond
	g := NewWithT(t)
	n, err := New(t.Context(), filepath.Join(t.TempDir(), "proxy.sock"))
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(n.Close)
	var heard atomic.Int64
	n.Attach(address, echo(t, &heard))
	n.Attach(other, echo(t, &atomic.Int64{}))
	asHost := dialThrough(n.ProxyURL("192.168.111.20"))
	call := func(conn net.Conn) chan string {
		answer := make(chan string, 1)
		go func() {
			_, err := io.WriteString(conn, "x")
			heard := make([]byte, 1)
			if err == nil {
				_, err = io.ReadFull(conn, heard)
			}
			answer <- fmt.Sprintf("%s %v", heard, err)
		}()
		return answer
	}

	before, err := n.Dial(t.Context(), address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(call(before)).Should(Receive(Equal("x <nil>")))
	heal := n.Cut("192.168.111.20")
	g.Expect(n.IsCut("192.168.111.20")).To(BeTrue())
	held := call(before)
	g.Consistently(held, silence).ShouldNot(Receive(), "there is no answer")
	g.Expect(heard.Load()).To(BeEquivalentTo(1), "what is sent does not arrive")

	ctx, cancel := context.WithTimeout(t.Context(), silence)
	defer cancel()
	_, err = n.Dial(ctx, address)
	g.Expect(err).To(MatchError(context.DeadlineExceeded), "a dial gets no answer")
	ctx, cancel = context.WithTimeout(t.Context(), silence)
	defer cancel()
	_, err = asHost(ctx, other)
	g.Expect(err).To(MatchError(os.ErrDeadlineExceeded), "a dial from the host gets no answer either")
	reached, err := n.Dial(t.Context(), other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(call(reached)).Should(Receive(Equal("x <nil>")), "others are reached")

	heal()
	g.Eventually(held).Should(Receive(Equal("x <nil>")), "what was sent arrives late")
	after, err := asHost(t.Context(), other)
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(call(after)).Should(Receive(Equal("x <nil>")))

	defer n.Cut("192.168.111.20")()
	given := call(before)
	g.Consistently(given, silence).ShouldNot(Receive())
	g.Expect(before.Close()).To(Succeed())
	g.Eventually(given).Should(Receive(), "who gives up is not held")
}

// echo returns the data that it receives, and counts it.
func echo(t *testing.T, heard *atomic.Int64) (address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				for one := make([]byte, 1); ; {
					if _, err := io.ReadFull(conn, one); err != nil {
						return
					}
					heard.Add(1)
					_, _ = conn.Write(one)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// dialThrough dials through a proxy, as a process on the host that the proxy's URL names.
func dialThrough(proxy string) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		parsed, err := url.Parse(proxy)
		if err != nil {
			return nil, err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", parsed.Host)
		if err != nil {
			return nil, err
		}
		if deadline, ok := ctx.Deadline(); ok {
			_ = conn.SetDeadline(deadline)
		}
		request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
		request.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(parsed.User.Username()+":")))
		if err := request.Write(conn); err != nil {
			return nil, err
		}
		_, err = io.ReadFull(conn, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n")))
		return conn, err
	}
}
