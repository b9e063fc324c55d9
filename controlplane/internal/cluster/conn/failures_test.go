package conn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/workload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

func TestSilentFailures(t *testing.T) {
	for situation, tc := range map[string]struct {
		err    error
		silent bool
	}{
		"connection refused":        {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true},
		"no route":                  {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}, true},
		"timeout":                   {fmt.Errorf("probe: %w", context.DeadlineExceeded), true},
		"unknown name":              {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}, false},
		"DNS timeout":               {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", IsTimeout: true}}, false},
		"unknown authority":         {&url.Error{Op: "Get", Err: x509.UnknownAuthorityError{}}, false},
		"proxy refuses connections": {&net.OpError{Op: "proxyconnect", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, false},
		"proxy responds with 502":   {&url.Error{Op: "Get", Err: &reach.ProxyError{Proxy: "p:3128", Status: 502}}, false},
		"response too large":        {&bound.TooLargeError{Host: "api", Path: "/version", Limit: 1 << 16}, false},
		"unauthorized":              {apierrors.NewUnauthorized("who are you?"), false},
		"overloaded":                {apierrors.NewTimeoutError("later", 1), false},
		"malformed response":        {errors.New("malformed HTTP response"), false},
	} {
		NewWithT(t).Expect(FailureOf(tc.err).Silent).To(Equal(tc.silent), situation)
	}
}

func TestFailureKinds(t *testing.T) {
	get := func(err error) error {
		return fmt.Errorf("cluster is not reachable: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1/?timeout=5s", Err: err})
	}
	for want, err := range map[string]error{
		"DNS gives no answer in time for api.example": get(&net.OpError{
			Op:  "dial",
			Err: &net.DNSError{Err: "no such host", Name: "api.example", IsTimeout: true},
		}),
		"DNS has no host api.example": get(&net.OpError{
			Op:  "dial",
			Err: &net.DNSError{Name: "api.example", IsNotFound: true},
		}),
		"its proxy cannot be reached: connection refused": get(&net.OpError{
			Op:  "proxyconnect",
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}),
		"the proxy p:3128 refuses the connection with 403 Forbid": get(&reach.ProxyError{Proxy: "p:3128", Status: 403}),
		"for another name": get(&tls.CertificateVerificationError{
			Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"internal"}}, Host: "api.internal"},
		}),
		"not from the authority": get(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
		"has expired": get(&tls.CertificateVerificationError{
			Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "internal"},
		}),
		"is not valid": get(&tls.CertificateVerificationError{
			Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign},
		}),
		"no route to host": get(&net.OpError{
			Op:  "dial",
			Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH),
		}),
		"does not answer in time": get(context.DeadlineExceeded),
		"503 Service Unavailable": fmt.Errorf("cluster is not reachable: %w",
			apierrors.NewServiceUnavailable("internal")),
		"no valid answer": get(errors.New("malformed HTTP response: internal")),
	} {
		failure := FailureOf(err)
		kind := workload.Unreachable
		if strings.Contains(err.Error(), "tls:") { // a server was reached
			kind = workload.Untrusted
		}
		NewWithT(t).Expect(failure.Kind).To(Equal(kind), want)
		NewWithT(t).Expect(failure.Message).To(ContainSubstring(want))
		NewWithT(t).Expect(failure.Message).NotTo(Or(ContainSubstring("10.0.0.1"), ContainSubstring("internal")))
	}
}
