package diagnostics

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// serve serves TLS with options, and returns its address.
func serve(t *testing.T, o *Options) string {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	g.Expect(err).NotTo(HaveOccurred())
	apply, err := o.TLS()
	g.Expect(err).NotTo(HaveOccurred())
	config := &tls.Config{}
	apply(config)
	config.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}} // as servers do: later
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			accepted, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if connection, ok := accepted.(*tls.Conn); ok {
				_ = connection.Handshake()
				_ = connection.Close()
			}
		}
	}()
	return listener.Addr().String()
}

// connect connects with a version of TLS.
func connect(address string, version uint16) error {
	config := &tls.Config{MinVersion: version, MaxVersion: version, InsecureSkipVerify: true}
	connection, err := tls.Dial("tcp", address, config)
	if err != nil {
		return err
	}
	return connection.Close()
}

func mapperOf(kinds ...schema.GroupVersionKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	return mapper
}

func server(profile string) *unstructured.Unstructured {
	s := newAPIServer()
	s.SetName("cluster")
	s.Object["spec"] = map[string]any{"tlsAdherence": "StrictAllComponents", "tlsSecurityProfile": map[string]any{"type": profile}}
	return s
}

func TestServersFollowProfileOfHub(t *testing.T) {
	g, o := NewWithT(t), parsed(t)
	address := serve(t, o)
	hub := fake.NewClientBuilder().WithObjects(server("Modern")).WithIndex(newAPIServer(), "metadata.name",
		func(o client.Object) []string { return []string{o.GetName()} }).Build()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	f := &follower{mapper: mapperOf(apiServers), client: hub, log: testr.New(t), followed: &o.hub}
	g.Expect(f.NeedLeaderElection()).To(BeFalse())
	g.Expect(connect(address, tls.VersionTLS12)).To(Succeed(), "the default of the flag")
	go func() { ended <- f.Start(ctx) }()

	g.Eventually(connect).WithArguments(address, uint16(tls.VersionTLS12)).ShouldNot(Succeed())
	g.Expect(connect(address, tls.VersionTLS13)).To(Succeed())
	g.Expect(hub.Patch(ctx, server(""), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"tlsSecurityProfile":{"type":"Old"}}}`)))).To(Succeed())
	g.Eventually(connect).WithArguments(address, uint16(tls.VersionTLS11)).Should(Succeed())
	g.Expect(hub.Patch(ctx, server(""), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"tlsAdherence":"LegacyAdheringComponentsOnly"}}`)))).To(Succeed())
	g.Eventually(connect).WithArguments(address, uint16(tls.VersionTLS11)).ShouldNot(Succeed())
	g.Expect(connect(address, tls.VersionTLS12)).To(Succeed())
	cancel()
	g.Eventually(ended).Should(Receive(BeNil()))
}

func TestOtherHubsHaveNoProfile(t *testing.T) {
	g, o := NewWithT(t), parsed(t)
	f := &follower{mapper: mapperOf(), log: testr.New(t), followed: &o.hub} // without client: a request panics
	g.Expect(f.Start(t.Context())).To(Succeed())
	g.Expect(o.hub.Load()).To(BeNil())
}

func TestFlagsOverrideProfileOfHub(t *testing.T) {
	g := NewWithT(t)
	g.Expect(parsed(t).chosen()).To(BeFalse())
	g.Expect(parsed(t, "--tls-min-version=VersionTLS12").chosen()).To(BeTrue())
	g.Expect(parsed(t, "--tls-cipher-suites=TLS_AES_128_GCM_SHA256").chosen()).To(BeTrue())
	g.Expect(parsed(t, "--tls-min-version=VersionTLS13").Follow(nil)).To(Succeed(), "the manager gets no follower")
}
