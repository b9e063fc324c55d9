// Package reach explains why a server cannot be reached, for the conditions of both providers. No text holds
// the path, query or user information of a URL, nor text from the server.
package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// ProxyConnect is the Op of the error with which net/http reports that it could not connect to the proxy.
const ProxyConnect = "proxyconnect"

// ProxyError reports that a proxy refuses a connection. net/http reports only the status text of the
// response, which could be that of the server behind the proxy.
type ProxyError struct {
	// Proxy is the host of the proxy.
	Proxy string
	// Status is the status of the response to CONNECT.
	Status int
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy %s refuses the connection with %d %s", e.Proxy, e.Status, http.StatusText(e.Status))
}

// ProxyAnswer returns a ProxyError unless a proxy accepts the connection. It is a hook for
// http.Transport.OnProxyConnectResponse.
func ProxyAnswer(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Proxy: bound.Value(proxy.Host), Status: answer.StatusCode}
}

// Cause returns why a request has no response; "" if the cause is unknown.
func Cause(err error) string {
	var (
		refused   *ProxyError
		operation *net.OpError
		lookup    *net.DNSError
		errno     syscall.Errno
		plain     tls.RecordHeaderError
		timeout   interface{ Timeout() bool }
	)
	switch certificate := certificateCause(err); {
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &operation) && operation.Op == ProxyConnect:
		if cause := Cause(operation.Err); cause != "" {
			return "the proxy cannot be reached: " + cause
		}
		return "the proxy cannot be reached"
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return "DNS has no host " + bound.Value(lookup.Name)
	case errors.As(err, &lookup) && lookup.IsTimeout:
		return "DNS gives no answer in time for " + bound.Value(lookup.Name)
	case errors.As(err, &lookup):
		return "DNS fails for " + bound.Value(lookup.Name)
	case certificate != "":
		return certificate
	case errors.As(err, &plain):
		return "it does not speak TLS"
	case errors.As(err, &errno):
		return errno.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return ""
}

// certificateCause returns why the certificate of a server is refused; "" if it is not.
func certificateCause(err error) string {
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	switch {
	case errors.As(err, &authority):
		return "its certificate is signed by an unknown authority (x509)"
	case errors.As(err, &name):
		return "its certificate is for another name (x509)"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired, or is not valid yet (x509)"
	case errors.As(err, &invalid):
		return "its certificate is not valid (x509)"
	}
	return ""
}
