package diagnostics

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o, fs := &Options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(fs)
	NewWithT(t).Expect(fs.Parse(args)).To(Succeed())
	return o
}

func TestDiagnosticsAreProtectedByDefault(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	server, err := parsed(t).Server()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.BindAddress).To(Equal(":8443"))
	g.Expect(server.SecureServing).To(BeTrue())
	g.Expect(server.FilterProvider).NotTo(BeNil())
	g.Expect(server.ExtraHandlers).To(HaveKey("/debug/pprof/"))

	open, err := parsed(t, "--insecure-diagnostics", "--diagnostics-address=:8080").Server()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(open.BindAddress).To(Equal(":8080"))
	g.Expect(open.ExtraHandlers).To(BeEmpty(), "profiles need authentication")
}

func TestTLSFlags(t *testing.T) {
	t.Parallel()
	g, config := NewWithT(t), &tls.Config{}
	settings, err := parsed(t, "--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256").TLS()
	g.Expect(err).NotTo(HaveOccurred())
	settings(config)
	g.Expect(config.MinVersion).To(Equal(uint16(tls.VersionTLS13)))
	g.Expect(config.CipherSuites).To(Equal([]uint16{tls.TLS_AES_128_GCM_SHA256}))

	_, err = parsed(t, "--tls-min-version=TLS1.2").Server()
	g.Expect(err).To(MatchError(ContainSubstring("--tls-min-version")))
	_, err = parsed(t, "--tls-cipher-suites=NONE").Server()
	g.Expect(err).To(MatchError(ContainSubstring("--tls-cipher-suites")))
}

func TestLogLevelIsSetWithPut(t *testing.T) {
	for name, c := range map[string]struct {
		method, body string
		want         int
	}{
		"set":         {method: http.MethodPut, body: "0\n", want: http.StatusOK},
		"read":        {method: http.MethodGet, want: http.StatusMethodNotAllowed},
		"not a level": {method: http.MethodPut, body: "all", want: http.StatusBadRequest},
		"too long":    {method: http.MethodPut, body: strings.Repeat("0", maxLogLevel+1), want: http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			setLogLevel(w, httptest.NewRequest(c.method, "/debug/flags/v", strings.NewReader(c.body)))
			NewWithT(t).Expect(w.Code).To(Equal(c.want))
		})
	}
}
