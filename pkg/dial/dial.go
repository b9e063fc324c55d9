// Package dial connects to servers whose address another user may have written, and refuses addresses at which that user
// has nothing to reach.
package dial

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// Dialer refuses connections to some addresses, after DNS has resolved them. Names, redirects and servers that another
// server names cannot bypass it.
type Dialer struct {
	// Refuse returns an error for an address to which no connection is opened.
	Refuse func(netip.Addr) error
	// Allowed are addresses (host:port) that are not refused, because the administrator has configured them.
	Allowed []string
	// Proxy returns the proxy of a request, or nil. A proxy is not refused. Proxy is that of the transport.
	Proxy func(*http.Request) (*url.URL, error)
	// Timeout is the time for one connection.
	Timeout time.Duration
}

// IsLoopback reports whether the address is the machine itself. Linux connects the unspecified address to the loopback
// interface.
func IsLoopback(ip netip.Addr) bool { return ip.IsLoopback() || ip.IsUnspecified() }

// DialContext connects to an address (host:port).
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: d.Timeout, KeepAlive: 30 * time.Second}
	if !slices.Contains(d.Allowed, address) && !d.isProxy(address) {
		dialer.Control = d.control
	}
	return dialer.DialContext(ctx, network, address) //nolint:wrapcheck // net/http expects the errors of net
}

// isProxy reports whether an address belongs to the proxy.
func (d *Dialer) isProxy(address string) bool {
	if d.Proxy == nil {
		return false
	}
	return slices.ContainsFunc([]string{"https", "http"}, func(scheme string) bool {
		proxy, err := d.Proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: "server.invalid"}})
		return err == nil && proxy != nil && address == dialed(proxy)
	})
}

// dialed returns the address that net/http dials for the proxy of a URL.
func dialed(proxy *url.URL) string {
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	return net.JoinHostPort(proxy.Hostname(), port)
}

// control is the Control hook of a net.Dialer: the address is the one that DNS resolved.
func (d *Dialer) control(_, address string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address: %w", address, err)
	}
	return d.Refuse(resolved.Addr())
}
