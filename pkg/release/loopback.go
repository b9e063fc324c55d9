package release

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"
)

// errLoopback reports that a connection to a loopback address was refused.
var errLoopback = errors.New("loopback addresses are refused")

// dialer refuses connections to loopback addresses, where the Pod of the manager listens. The registries.conf
// of a tenant, DNS entries, redirects and token servers of a registry could name such an address. The
// conditions would then show the tenant which ports of the Pod are open.
type dialer struct {
	// registries are the registries (host:port) from the flags of the manager. They may have loopback
	// addresses.
	registries []string
	// proxy returns the proxy of a request, or nil. The environment of the manager sets the proxy.
	proxy func(*http.Request) (*url.URL, error)
}

// DialContext connects to an address (host:port).
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: attemptTimeout, KeepAlive: 30 * time.Second}
	if !slices.Contains(d.registries, address) && !d.isProxy(address) {
		dialer.Control = refuseLoopback
	}
	return dialer.DialContext(ctx, network, address) //nolint:wrapcheck // net/http expects the errors of net
}

// isProxy reports whether an address belongs to the proxy.
func (d *dialer) isProxy(address string) bool {
	if d.proxy == nil {
		return false
	}
	return slices.ContainsFunc([]string{"https", "http"}, func(scheme string) bool {
		proxy, err := d.proxy(&http.Request{URL: &url.URL{Scheme: scheme, Host: "registry.invalid"}})
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

// refuseLoopback is the Control hook of a net.Dialer: the address is the one that DNS resolved. Linux connects the
// unspecified address to the loopback interface.
func refuseLoopback(_, address string, _ syscall.RawConn) error {
	resolved, err := netip.ParseAddrPort(address)
	if ip := resolved.Addr().Unmap(); err != nil || ip.IsLoopback() || ip.IsUnspecified() {
		return errLoopback
	}
	return nil
}
