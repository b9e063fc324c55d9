package dial

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

// A proxy may run in the Pod of a manager, or on the machine of a user.
func TestProxyIsNotRefused(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	address := listener.Addr().String()
	refused := errors.New("refused")
	proxy := &url.URL{Scheme: "http", Host: address}
	d := &Dialer{Refuse: func(netip.Addr) error { return refused }, Proxy: func(*http.Request) (*url.URL, error) { return proxy, nil }}
	conn, err := d.DialContext(t.Context(), "tcp", address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.Close()).To(Succeed())

	d.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	_, err = d.DialContext(t.Context(), "tcp", address)
	g.Expect(err).To(MatchError(refused))
	d.Allowed = []string{address}
	conn, err = d.DialContext(t.Context(), "tcp", address)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.Close()).To(Succeed())
	for text, want := range map[string]string{
		"http://p": "p:80", "https://p": "p:443", "socks5://p": "p:1080",
		"http://[::1]:3128": "[::1]:3128",
	} {
		proxy, err := url.Parse(text)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(dialed(proxy)).To(Equal(want))
	}
}
