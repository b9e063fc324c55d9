package release

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"
)

const upstream = "quay.invalid/ocp/release:4.19.3-x86_64"

func TestAMirrorGivesTheDigestInTheNameOfTheSource(t *testing.T) {
	g := NewWithT(t)
	mirror, questions := newRegistry(t, nil)
	found, _, err := resolveFrom(t, NewResolver(nil), upstream, Sources{Mirrors: []string{mirror}}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(MatchRegexp(`^quay\.invalid/ocp/release@sha256:[a-f0-9]{64}$`))
	g.Expect(questions.Load()).To(BeEquivalentTo(1))
}

func TestTheSourceIsAskedAfterItsMirrors(t *testing.T) {
	g := NewWithT(t)
	source, _ := newRegistry(t, nil)
	empty := strings.Replace(source, "4.19.3", "4.99.0", 1)
	found, _, err := resolveFrom(t, NewResolver(nil), source, Sources{Mirrors: []string{"127.0.0.1:1/ocp:4.19.3", empty}}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ContainSubstring("@sha256:"))
}

func TestFailuresOfAllRegistriesAreNamed(t *testing.T) {
	g := NewWithT(t)
	mirror, _ := newRegistry(t, nil)
	host, _, _ := strings.Cut(mirror, "/")
	absent := strings.Replace(mirror, "4.19.3", "4.99.0", 1)
	_, _, err := resolveFrom(t, NewResolver(nil), "127.0.0.1:1/ocp:4.99.0", Sources{Mirrors: []string{absent}}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable), "the source may have it")
	g.Expect(err.Error()).To(Equal("the registry cannot be asked: 127.0.0.1:1: connection refused; " + host + " has no such image"))

	_, _, err = resolveFrom(t, NewResolver(nil), absent, Sources{Mirrors: []string{absent}}, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound), "none has it")
}

// What one tenant's mirror says is no answer for another.
func TestTheAnswerOfAMirrorIsThatOfItsClusterAlone(t *testing.T) {
	g := NewWithT(t)
	mirror, _ := newRegistry(t, nil)
	r := NewResolver(nil)
	_, _, err := resolveFrom(t, r, upstream, Sources{Mirrors: []string{mirror}}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolveFrom(t, r, upstream, Sources{}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
}

func TestNoMoreThanSomeMirrorsAreAsked(t *testing.T) {
	g := NewWithT(t)
	source, questions := newRegistry(t, nil)
	absent := strings.Replace(source, "4.19.3", "4.99.0", 1)
	many := make([]string, 100)
	for i := range many {
		many[i] = absent
	}
	_, _, err := resolveFrom(t, NewResolver(nil), source, Sources{Mirrors: many}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(questions.Load()).To(BeEquivalentTo(mostMirrors + 1))
}

func TestAMirrorGetsNoCredentialsOfTheSource(t *testing.T) {
	g := NewWithT(t)
	sent := atomic.Pointer[string]{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if header := req.Header.Get("Authorization"); header != "" {
			sent.Store(&header)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	mirror := strings.TrimPrefix(server.URL, "http://") + "/ocp/release:4.19.3"
	credentials, err := ParseCredentials([]byte(`{"auths":{"quay.invalid":{"auth":"dXNlcjpwYXNz"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolveFrom(t, NewResolver(nil), upstream, Sources{Mirrors: []string{mirror}}, credentials)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(sent.Load()).To(BeNil())

	host, _, _ := strings.Cut(mirror, "/")
	credentials, err = ParseCredentials([]byte(`{"auths":{"` + host + `":{"auth":"dXNlcjpwYXNz"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolveFrom(t, NewResolver(nil), upstream, Sources{Mirrors: []string{mirror}}, credentials)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(sent.Load()).NotTo(BeNil(), "its own it gets")
}

func TestABundleIsTrustedForItsClusterAlone(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "https://") + "/ocp/release:4.19.3"
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	r := NewResolver(nil)
	_, _, err := resolveFrom(t, r, image, Sources{Authorities: bundle}, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound), "it answers")
	_, _, err = resolveFrom(t, r, image, Sources{}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	_, _, err = resolveFrom(t, r, image, Sources{Authorities: bundle + "\n"}, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound))
	g.Expect(r.transports.Len()).To(Equal(2), "one for each bundle")
	for i := range 2 * transports {
		r.transportFor(bundle + strings.Repeat("\n", i+2))
	}
	g.Expect(r.transports.Len()).To(Equal(transports))
}
