package network

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"

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
	// As a process of its own asks: through the proxy, with TLS to the host itself.
	proxy, err := url.Parse(n.ProxyURL())
	g.Expect(err).NotTo(HaveOccurred())
	ask := func() (string, error) {
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

	_, err = ask()
	g.Expect(err).To(MatchError(ContainSubstring("Bad Gateway")), "nothing is there")
	_, err = n.Dial(t.Context(), "192.168.111.20:10250")
	g.Expect(errors.Is(err, ErrUnreachable)).To(BeTrue())

	leave := n.Attach("192.168.111.20:10250", serve("first"))
	g.Expect(ask()).To(Equal("first"))
	n.Attach("192.168.111.20:10250", serve("second"))
	leave()
	g.Expect(ask()).To(Equal("second"), "an address belongs to who took it last")

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", n.Socket())
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	_, err = io.WriteString(conn, "CONNECT 192.168.111.20:10250 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	g.Expect(err).NotTo(HaveOccurred())
	head := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(conn, head)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(head)).To(Equal("HTTP/1.1 200"), "as kube-apiserver asks, at the socket")
}
