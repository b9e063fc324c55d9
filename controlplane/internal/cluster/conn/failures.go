package conn

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

// FailureOf returns the failure of a request to a workload cluster for the facts. See Cause for its text.
func FailureOf(err error) workload.Failure {
	var refused RefusedError
	switch {
	case errors.As(err, &refused):
		return workload.Failure{Kind: workload.KubeconfigRefused, Message: refused.Error()}
	case apierrors.IsUnauthorized(err):
		return workload.Failure{
			Kind:    workload.Unauthorized,
			Message: "its API server does not accept the credentials in the kubeconfig (401 Unauthorized)",
		}
	}
	cause, silent := causeOf(err)
	if isUntrusted(err) {
		return workload.Failure{Kind: workload.Untrusted, Message: cause}
	}
	return workload.Failure{Kind: workload.Unreachable, Message: cause, Silent: silent}
}

// isUntrusted reports whether the API server presented a certificate that the kubeconfig does not accept.
func isUntrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// Cause describes the error of a request to a workload cluster, without any text of the cluster itself.
func Cause(err error) string {
	cause, _ := causeOf(err)
	return cause
}

// causeOf is Cause. silent reports whether nothing responded at an address that could be resolved.
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
	case errors.As(err, &refused): // before all others: the request never reached the API server
		return refused.Error(), false
	case errors.As(err, &connect) && connect.Op == reach.ProxyConnect:
		return "its proxy cannot be reached: " + cmp.Or(reach.Cause(connect.Err), "no valid answer"), false
	case errors.As(err, &lookup):
		return "the name of its API server cannot be resolved by DNS: " + reach.Cause(lookup), false
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
