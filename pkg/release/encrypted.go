package release

import (
	"errors"
	"net/http"
)

// errNotEncrypted reports that a request was refused because plain HTTP would carry it.
var errNotEncrypted = errors.New("plain HTTP is refused")

// encrypted refuses requests over plain HTTP. go-containerregistry falls back to plain HTTP for loopback and
// private addresses, localhost and *.local (name.Registry.Scheme), and follows the realm of any token server. A
// host between the manager and the registry could break TLS to read the credentials of the pull secret. The
// host could also choose the digest.
type encrypted struct {
	next http.RoundTripper
	// except is the host, with its port, of a registry that may be queried over plain HTTP; empty: none.
	except string
}

// RoundTrip implements http.RoundTripper.
func (e *encrypted) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && request.URL.Host != e.except {
		return nil, errNotEncrypted
	}
	return e.next.RoundTrip(request) //nolint:wrapcheck // a RoundTripper returns errors as they are
}
