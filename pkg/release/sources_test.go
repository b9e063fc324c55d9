package release

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/measuretest"
)

const upstream = "quay.invalid/ocp/release:4.19.3-x86_64"

func TestDigestOfMirrorIsReturnedInNameOfSource(t *testing.T) {
	g := NewWithT(t)
	mirror, requests := newRegistry(t, nil)
	found, _, err := resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), upstream,
		Sources{Mirrors: []string{mirror}, Insecure: []string{mirror}}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(MatchRegexp(`^quay\.invalid/ocp/release@sha256:[a-f0-9]{64}$`))
	g.Expect(requests.Load()).To(BeEquivalentTo(1))
}

func TestSourceIsQueriedAfterItsMirrors(t *testing.T) {
	g := NewWithT(t)
	source, _ := newRegistry(t, nil)
	empty := strings.Replace(source, "4.19.3", "4.99.0", 1)
	found, _, err := resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), source,
		Sources{Mirrors: []string{"127.0.0.1:1/ocp:4.19.3", empty}, Insecure: []string{source, empty}}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(ContainSubstring("@sha256:"))
}

func TestFailuresOfAllRegistriesAreNamed(t *testing.T) {
	g := NewWithT(t)
	mirror, _ := newRegistry(t, nil)
	host, _, _ := strings.Cut(mirror, "/")
	absent := strings.Replace(mirror, "4.19.3", "4.99.0", 1)
	_, _, err := resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), "127.0.0.1:1/ocp:4.99.0",
		Sources{Mirrors: []string{absent}, Insecure: []string{absent}}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable), "the source may have the image")
	g.Expect(err.Error()).To(Equal("the registry cannot be queried: 127.0.0.1:1: connection refused; " + host + " has no such image"))

	_, _, err = resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), absent,
		Sources{Mirrors: []string{absent}, Insecure: []string{absent}},
		Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound), "no registry has the image")
}

// An answer of one tenant's mirror is not valid for another tenant.
func TestAnswerOfMirrorIsUsedForItsClusterOnly(t *testing.T) {
	g := NewWithT(t)
	mirror, _ := newRegistry(t, nil)
	r := NewResolver(remote.DefaultTransport, clock.RealClock{})
	_, _, err := resolveFrom(t, r, upstream, Sources{Mirrors: []string{mirror}, Insecure: []string{mirror}}, Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolveFrom(t, r, upstream, Sources{}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
}

func TestNumberOfQueriedMirrorsIsLimited(t *testing.T) {
	g := NewWithT(t)
	source, requests := newRegistry(t, nil)
	absent := strings.Replace(source, "4.19.3", "4.99.0", 1)
	many := make([]string, 100)
	for i := range many {
		many[i] = absent
	}
	_, _, err := resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), source,
		Sources{Mirrors: many, Insecure: []string{source, absent}},
		Credentials{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(requests.Load()).To(BeEquivalentTo(maxMirrors + 1))
}

func TestMirrorGetsNoCredentialsOfSource(t *testing.T) {
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
	_, _, err = resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), upstream,
		Sources{Mirrors: []string{mirror}, Insecure: []string{mirror}}, credentials)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(sent.Load()).To(BeNil())

	host, _, _ := strings.Cut(mirror, "/")
	credentials, err = ParseCredentials([]byte(`{"auths":{"` + host + `":{"auth":"dXNlcjpwYXNz"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), upstream,
		Sources{Mirrors: []string{mirror}, Insecure: []string{mirror}}, credentials)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(sent.Load()).NotTo(BeNil(), "the mirror gets its own credentials")
}

func TestBundleIsTrustedForItsClusterOnly(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewUnstartedServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	image := strings.TrimPrefix(server.URL, "https://") + "/ocp/release:4.19.3"
	bundle := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	r := NewResolver(remote.DefaultTransport, clock.RealClock{})
	_, _, err := resolveFrom(t, r, image, Sources{Authorities: bundle}, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound), "the registry is trusted and answers")
	_, _, err = resolveFrom(t, r, image, Sources{}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	_, _, err = resolveFrom(t, r, image, Sources{Authorities: bundle + "\n"}, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound))
	g.Expect(r.transports.Len()).To(Equal(2), "one for each bundle")
	for i := range 2 * maxTransports {
		r.transportFor(bundle + strings.Repeat("\n", i+2))
	}
	g.Expect(r.transports.Len()).To(Equal(maxTransports))
}

// plainMirror returns a transport to a registry that speaks only plain HTTP and requires credentials, at any
// address. It stands for a host between the manager and a registry.
func plainMirror(t *testing.T) (transport *http.Transport, sent *atomic.Pointer[string]) {
	t.Helper()
	sent = &atomic.Pointer[string]{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if header := req.Header.Get("Authorization"); header != "" {
			sent.Store(&header)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}}, sent
}

// go-containerregistry falls back to plain HTTP for these registries.
func TestPlainHTTPRegistryGetsNoCredentials(t *testing.T) {
	for _, host := range []string{
		"127.0.0.1:5000", "[::1]:5000", "10.1.2.3:5000", "172.16.2.3:5000", "192.168.2.3:5000", "192.168.2.3",
		"localhost:5000", "mirror.local", "mirror.localhost:5000", "127.0.0.1.example.com:5000", "mirror.example.com:5000",
	} {
		t.Run(host, func(t *testing.T) {
			g := NewWithT(t)
			transport, sent := plainMirror(t)
			credentials, err := ParseCredentials([]byte(`{"auths":{"` + host + `":{"auth":"dXNlcjpwYXNz"}}}`))
			g.Expect(err).NotTo(HaveOccurred())
			mirror := host + "/ocp/release:4.19.3"
			other := Sources{Mirrors: []string{mirror}, Insecure: []string{"other.example.com/ocp/release:4.19.3"}}
			_, _, err = resolveFrom(t, NewResolver(transport, clock.RealClock{}), mirror, other, credentials)
			g.Expect(err).To(MatchError(ErrUnavailable))
			g.Expect(err.Error()).To(ContainSubstring(host + " does not speak TLS, and registries.conf does not set insecure = true for it"))
			g.Expect(sent.Load()).To(BeNil())

			_, _, err = resolveFrom(t, NewResolver(transport, clock.RealClock{}), mirror, Sources{Insecure: []string{mirror}}, credentials)
			g.Expect(err).To(MatchError(ErrRefused))
			g.Expect(sent.Load()).NotTo(BeNil(), "registries.conf permits it")
		})
	}
}

// The token server of a registry gets the credentials of the registry, too.
func TestPlainHTTPTokenServerGetsNoCredentials(t *testing.T) {
	g := NewWithT(t)
	transport, sent := plainMirror(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://tokens.example.com/token"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	transport.DialTLSContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}).DialContext(ctx, network,
			server.Listener.Addr().String())
	}
	credentials, err := ParseCredentials([]byte(`{"auths":{"quay.invalid":{"auth":"dXNlcjpwYXNz"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolveFrom(t, NewResolver(transport, clock.RealClock{}), upstream, Sources{}, credentials)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(sent.Load()).To(BeNil())
}

// The alert counts lookups. A mirror without the image is no result: the source may have the image.
func TestLookupsAreCountedByTheResultOfAllRegistries(t *testing.T) {
	g := NewWithT(t)
	count := func(result string) float64 {
		value, err := measuretest.Count("capi_openshift_agent_release_lookups_total", map[string]string{"result": result})
		g.Expect(err).NotTo(HaveOccurred())
		return value
	}
	mirror, _ := newRegistry(t, nil)
	absent := strings.Replace(mirror, "4.19.3", "4.99.0", 1)
	for result, mirrors := range map[string][]string{"unavailable": {absent}, "found": {absent, mirror}} {
		before, others := count(result), count("not_found")
		_, _, err := resolveFrom(t, measured(NewResolver(remote.DefaultTransport, clock.RealClock{})), "127.0.0.1:1/ocp:4.99.0",
			Sources{Mirrors: mirrors, Insecure: mirrors}, Credentials{})
		if result == "found" {
			g.Expect(err).NotTo(HaveOccurred())
		} else {
			g.Expect(err).To(HaveOccurred())
		}
		g.Expect(count(result)-before).To(BeEquivalentTo(1), result)
		g.Expect(count("not_found")).To(Equal(others))
	}
	before, others := count("blocked"), count("unavailable")
	resolver := measured(NewResolver(remote.DefaultTransport, clock.RealClock{}))
	_, _, err := resolveFrom(t, resolver, upstream, Sources{Blocked: true}, Credentials{})
	g.Expect(err).To(HaveOccurred())
	g.Expect(count("blocked") - before).To(BeEquivalentTo(1))
	g.Expect(count("unavailable")).To(Equal(others), "registries.conf of one cluster is no outage")
}

func TestBlockedRegistryIsNotQueried(t *testing.T) {
	g := NewWithT(t)
	source, requests := newRegistry(t, nil)
	absent := strings.Replace(source, "4.19.3", "4.99.0", 1)
	_, _, err := resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), source,
		Sources{Mirrors: []string{absent}, Insecure: []string{source, absent}, Blocked: true}, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound))
	g.Expect(requests.Load()).To(BeEquivalentTo(1), "the mirror only")

	_, _, err = resolveFrom(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), source,
		Sources{Insecure: []string{source}, Blocked: true}, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(ContainSubstring("registries.conf blocks its registry, and names no mirror to pull it from by tag"))
	g.Expect(requests.Load()).To(BeEquivalentTo(1))
}

func TestVersionDiffersBetweenSources(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Sources{}.Version("")).To(BeEmpty())
	g.Expect(Sources{}.Version("a")).To(BeEmpty(), "one registry gives the same answer for all credentials")
	seen := map[string]bool{}
	for _, sources := range []Sources{
		{},
		{Mirrors: []string{upstream}},
		{Insecure: []string{upstream}},
		{Blocked: true},
		{Authorities: "PEM"},
		{Mirrors: []string{upstream}, Blocked: true},
	} {
		seen[sources.Version("")] = true
	}
	g.Expect(seen).To(HaveLen(6))
	mirrored := Sources{Mirrors: []string{upstream}}
	g.Expect(mirrored.Version("a")).NotTo(Equal(mirrored.Version("b")), "the credentials decide which registry answers")
}

// A mirror that refused the pull secret may have another image than the source, which answered instead.
func TestMirrorsAreQueriedAgainWithOtherCredentials(t *testing.T) {
	g := NewWithT(t)
	mirror, requests := newRegistry(t, nil)
	r, sources := NewResolver(remote.DefaultTransport, clock.RealClock{}), Sources{Mirrors: []string{mirror}, Insecure: []string{mirror}}
	for _, secret := range []string{`{"auths":{}}`, `{"auths":{"a":{}}}`} {
		credentials, err := ParseCredentials([]byte(secret))
		g.Expect(err).NotTo(HaveOccurred())
		_, _, err = resolveFrom(t, r, upstream, sources, credentials)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(requests.Load()).To(BeEquivalentTo(2))
}
