package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
)

func TestCause(t *testing.T) {
	get := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://user:hush@quay.internal/v2/?token=hush", Err: err}
	}
	for want, err := range map[string]error{
		"DNS has no host quay.internal": get(&net.OpError{
			Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "quay.internal", IsNotFound: true},
		}),
		"DNS gives no answer in time for quay.internal":            get(&net.DNSError{Name: "quay.internal", IsTimeout: true}),
		"DNS fails for quay.internal":                              get(&net.DNSError{Name: "quay.internal"}),
		"its certificate is signed by an unknown authority (x509)": get(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
		"its certificate has expired, or is not valid yet (x509)":  get(x509.CertificateInvalidError{Reason: x509.Expired}),
		"its certificate is not valid (x509)":                      get(x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}),
		"its certificate is for another name (x509)": get(x509.HostnameError{
			Certificate: &x509.Certificate{DNSNames: []string{"hush"}}, Host: "hush",
		}),
		"connection refused": get(&net.OpError{
			Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}),
		"the proxy cannot be reached: connection refused": get(&net.OpError{
			Op: "proxyconnect", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED),
		}),
		"the proxy cannot be reached": get(&net.OpError{Op: "proxyconnect", Err: errors.New("hush")}),
		"no answer in time":           get(context.DeadlineExceeded),
		"it does not speak TLS":       get(tls.RecordHeaderError{Msg: "hush"}),
		"the proxy p:3128 refuses the connection with 502 Bad Gateway": get(&ProxyError{"p:3128", 502}),
	} {
		NewWithT(t).Expect(Cause(err)).To(Equal(want))
	}
	NewWithT(t).Expect(Cause(errors.New("hush"))).To(BeEmpty())
}

func TestRefusingProxyIsNamedWithItsStatus(t *testing.T) {
	for _, status := range []int{http.StatusProxyAuthRequired, http.StatusForbidden, http.StatusBadGateway} {
		g := NewWithT(t)
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(proxy.Close)
		at, err := url.Parse(proxy.URL)
		g.Expect(err).NotTo(HaveOccurred())
		at.User = url.UserPassword("user", "hush")
		client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(at), OnProxyConnectResponse: ProxyAnswer}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.internal:6443/version", nil)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = client.Do(request) //nolint:bodyclose // no response
		g.Expect(Cause(err)).
			To(And(ContainSubstring("the proxy "+at.Host), ContainSubstring(http.StatusText(status)), Not(ContainSubstring("hush"))))
	}
}
