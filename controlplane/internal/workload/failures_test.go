package workload

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/facts"
)

func TestTheKindOfAFailure(t *testing.T) {
	get := func(err error) error {
		return fmt.Errorf("cluster is not reachable: %w", &url.Error{Op: "Get", URL: "https://10.0.0.1/?timeout=5s", Err: err})
	}
	for want, err := range map[string]error{
		"looked up in DNS":        get(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.internal", IsTimeout: true}}),
		"for another name":        get(&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"internal"}}, Host: "api.internal"}}),
		"has expired":             get(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "internal"}}),
		"is not valid":            get(&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}}),
		"no route to host":        get(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}),
		"does not answer in time": get(context.DeadlineExceeded),
		"503 Service Unavailable": fmt.Errorf("cluster is not reachable: %w", apierrors.NewServiceUnavailable("internal")),
		"no valid answer":         get(errors.New("malformed HTTP response: internal")),
	} {
		failure := failureOf(err)
		NewWithT(t).Expect(failure.Kind).To(Equal(facts.Unreachable))
		NewWithT(t).Expect(failure.Message).To(ContainSubstring(want))
		NewWithT(t).Expect(failure.Message).NotTo(Or(ContainSubstring("10.0.0.1"), ContainSubstring("internal")))
	}
}
