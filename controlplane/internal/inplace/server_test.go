package inplace

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Cluster API first discovers the hooks. The certificate may be created after the manager starts.
func TestServerWaitsForCertificate(t *testing.T) {
	g := NewWithT(t)
	options := Options{Enabled: true, Port: freePort(t), CertDir: t.TempDir()}
	s, err := newServer(options, func(*tls.Config) {}, &Extension{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.NeedLeaderElection()).To(BeFalse())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	g.Consistently(ended).WithTimeout(time.Second).ShouldNot(Receive(), "the server waits for the certificate")

	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(filepath.Join(options.CertDir, "tls.key"), key, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(options.CertDir, "tls.crt"), certificate, 0o600)).To(Succeed())
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(certificate)
	core := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}}}
	url := "https://127.0.0.1:" + strconv.Itoa(options.Port) + "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"
	g.Eventually(func() ([]string,
		error,
	) {
		return discover(ctx, core, url)
	}).WithTimeout(time.Minute).Should(ConsistOf("CanUpdateMachineSet", "UpdateMachine", "GenerateUpgradePlan"))
	stop()
	g.Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
}

func TestServerStopsWithoutCertificate(t *testing.T) {
	g := NewWithT(t)
	s, err := newServer(Options{Enabled: true, Port: freePort(t), CertDir: t.TempDir()}, func(*tls.Config) {}, &Extension{})
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	stop()
	g.Expect(s.Start(ctx)).To(Succeed())
}

// discover returns the hooks of an extension.
func discover(ctx context.Context, core *http.Client, url string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return nil, err
	}
	response, err := core.Do(req)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var found hooksv1.DiscoveryResponse
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, err
	}
	var hooks []string
	for _, h := range found.Handlers {
		hooks = append(hooks, h.RequestHook.Hook)
	}
	return hooks, nil
}

func freePort(t *testing.T) int {
	t.Helper()
	g := NewWithT(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(listener.Close()).To(Succeed()) }()
	return listener.Addr().(*net.TCPAddr).Port
}
