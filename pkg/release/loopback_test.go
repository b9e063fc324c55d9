package release

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
)

const refusal = " leads to a loopback address, which is that of the manager's own Pod"

// The condition would show a tenant which ports of the Pod are open, and which servers listen there.
func TestLoopbackRegistryOfRegistriesConfIsRefused(t *testing.T) {
	served, lookups := newRegistry(t, nil)
	_, port, _ := strings.Cut(strings.TrimSuffix(served, "/ocp/release:4.19.3-x86_64"), ":")
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "127.1.2.3", "[::1]", "[::ffff:127.0.0.1]"} {
		for situation, registry := range map[string]string{"open port": host + ":" + port, "closed port": host + ":1"} {
			t.Run(host+" "+situation, func(t *testing.T) {
				g := NewWithT(t)
				image := registry + "/ocp/release:4.19.3-x86_64"
				_, _, err := resolve(t, NewResolver(NewTransport(), clock.RealClock{}), image, Credentials{})
				g.Expect(err).To(MatchError(ErrUnavailable))
				g.Expect(err.Error()).To(ContainSubstring(registry+refusal), "the same text for each port")
				_, _, err = resolveFrom(t, NewResolver(NewTransport("127.0.0.1:5000"), clock.RealClock{}), upstream,
					Sources{Mirrors: []string{image}, Insecure: []string{image}, Blocked: true}, Credentials{})
				g.Expect(err).To(MatchError(ContainSubstring(registry + refusal)))
			})
		}
	}
	NewWithT(t).Expect(lookups.Load()).To(BeZero())
}

func TestEncryptedLoopbackRegistryIsRefused(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	registry := strings.TrimPrefix(server.URL, "https://")
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	_, _, err := resolveFrom(t, NewResolver(NewTransport(), clock.RealClock{}), registry+"/ocp:4.19.3", Sources{Authorities: bundle},
		Credentials{})
	g.Expect(err).To(MatchError(ContainSubstring(registry + refusal)))
}

func TestLoopbackRegistryOfTheFlagsIsQueried(t *testing.T) {
	g := NewWithT(t)
	image, lookups := newRegistry(t, nil)
	registry, _, _ := strings.Cut(image, "/")
	_, _, err := resolve(t, NewResolver(NewTransport("quay.io:443", registry), clock.RealClock{}), image, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lookups.Load()).To(BeEquivalentTo(1))
}

func TestRegistryDoesNotLeadToLoopbackByItsTokenServer(t *testing.T) {
	g := NewWithT(t)
	reached := atomic.Bool{}
	tokens := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(tokens.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	registry, image := server.Listener.Addr().String(), server.Listener.Addr().String()+"/ocp:4.19.3"
	sources := plain(image)
	sources.Authorities = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tokens.Certificate().Raw}))
	_, _, err := resolveFrom(t, NewResolver(NewTransport(registry), clock.RealClock{}), image, sources, Credentials{})
	g.Expect(err).To(MatchError(ContainSubstring(registry + refusal)))
	g.Expect(reached.Load()).To(BeFalse())
}
