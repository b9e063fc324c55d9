package cluster

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

const (
	// steadyFor is how long a cause is told at least before another of its kind takes its place: an API server that comes and goes fails now
	// in this way, now in that.
	steadyFor = time.Minute
)

// failure is why there is no connection, since when that is told.
type failure struct {
	facts.Failure
	since time.Time
}

func failureOf(err error) facts.Failure {
	var refused RefusedError
	switch {
	case errors.As(err, &refused):
		return facts.Failure{Kind: facts.KubeconfigRefused, Message: refused.Error()}
	case apierrors.IsUnauthorized(err):
		return facts.Failure{Kind: facts.Unauthorized, Message: "its API server does not accept the credentials in the kubeconfig (401 Unauthorized)"}
	}
	cause, silent := causeOf(err)
	if isUntrusted(err) {
		return facts.Failure{Kind: facts.Untrusted, Message: cause}
	}
	return facts.Failure{Kind: facts.Unreachable, Message: cause, Silent: silent}
}

// isUntrusted reports whether a server was reached whose certificate the kubeconfig does not accept.
func isUntrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// Cause says what kind of error a request to a workload cluster came to, and nothing that the cluster itself says.
func Cause(err error) string {
	cause, _ := causeOf(err)
	return cause
}

// causeOf is Cause; silent reports whether nothing answered at an address that is known.
func causeOf(err error) (cause string, silent bool) {
	var (
		tooLarge  *bound.TooLargeError
		refused   *reach.ProxyError
		connect   *net.OpError
		lookup    *net.DNSError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		errno     syscall.Errno
		timeout   interface{ Timeout() bool }
		answer    apierrors.APIStatus
	)
	switch {
	case errors.As(err, &tooLarge):
		return tooLarge.Error(), false
	case errors.As(err, &refused): // before all else: what the proxy refuses never reached the API server
		return refused.Error(), false
	case errors.As(err, &connect) && connect.Op == reach.ProxyConnect:
		return "its proxy cannot be reached: " + cmp.Or(reach.Cause(connect.Err), "no valid answer"), false
	case errors.As(err, &lookup):
		return "the name of its API server cannot be looked up in DNS: " + reach.Cause(lookup), false
	case errors.As(err, &authority):
		return "the certificate of its API server is not from the authority in the kubeconfig", false
	case errors.As(err, &name):
		return "the certificate of its API server is for another name", false
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate of its API server has expired, or is not valid yet", false
	case errors.As(err, &invalid):
		return "the certificate of its API server is not valid", false
	case errors.As(err, &errno):
		return "its API server cannot be reached (" + errno.Error() + ")", true
	case errors.As(err, &timeout) && timeout.Timeout():
		return "its API server does not answer in time", true
	case errors.As(err, &answer):
		code := int(answer.Status().Code)
		return fmt.Sprintf("its API server answers with %d %s", code, http.StatusText(code)), false
	}
	return "its API server gives no valid answer", false
}

// failed notes why an attempt to connect failed, or that the connection is lost.
func (l *connection) failed(err error) {
	l.update(func() {
		l.endWatches()
		l.lastSuccess, l.conn, l.connected = l.answered(), nil, false
		now := failureOf(err)
		now.KubeconfigVersion = l.kubeconfig
		if known := l.failure; known != nil && known.Kind == now.Kind && known.Silent == now.Silent && known.KubeconfigVersion == now.KubeconfigVersion && l.now().Sub(known.since) < steadyFor {
			return
		}
		l.failure = &failure{Failure: now, since: l.now()}
	})
}
