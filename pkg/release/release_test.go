package release

import (
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/measuretest"
)

// newRegistry serves one release image and counts the requests for its manifest.
func newRegistry(t *testing.T, protect func(*http.Request) bool) (image string, requests *atomic.Int32) {
	t.Helper()
	g := NewWithT(t)
	requests = &atomic.Int32{}
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodHead && strings.Contains(req.URL.Path, "/manifests/") {
			requests.Add(1)
		}
		if protect != nil && req.Method != http.MethodPut && req.Method != http.MethodPost && req.Method != http.MethodPatch && !protect(req) {
			w.Header().Set("WWW-Authenticate", `Basic realm="lab"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	image = strings.TrimPrefix(server.URL, "http://") + "/ocp/release:4.19.3-x86_64"
	ref, err := name.ParseReference(image)
	g.Expect(err).NotTo(HaveOccurred())
	content, err := random.Image(16, 1)
	g.Expect(err).NotTo(HaveOccurred())
	options := []remote.Option{}
	if protect != nil {
		credentials, err := ParseCredentials([]byte(`{"auths":{"` + ref.Context().RegistryStr() + `/ocp":{"auth":"dXNlcjpwYXNz"}}}`))
		g.Expect(err).NotTo(HaveOccurred())
		options = append(options, remote.WithAuth(credentials.For(ref.Context())))
	}
	g.Expect(remote.Write(ref, content, options...)).To(Succeed())
	requests.Store(0)
	return image, requests
}

// resolve calls Resolve until the registry has answered.
func resolve(t *testing.T, r *Resolver, image string, credentials Credentials) (string, time.Duration, error) {
	t.Helper()
	return resolveFrom(t, r, image, plain(image), credentials)
}

// plain returns sources that permit plain HTTP for the registries of some images, because the test registries
// speak only plain HTTP.
func plain(images ...string) Sources { return Sources{Insecure: images} }

func resolveFrom(t *testing.T, r *Resolver, image string, sources Sources, credentials Credentials) (string, time.Duration, error) {
	t.Helper()
	done := make(chan struct{}, 1)
	found, _, err := r.Resolve(image, sources, credentials, func() { done <- struct{}{} })
	if err == nil {
		return found, 0, nil
	}
	NewWithT(t).Expect(err).To(MatchError(ErrPending))
	<-done
	return r.Resolve(image, sources, credentials, func() {})
}

func TestReleaseIsQueriedOnce(t *testing.T) {
	g := NewWithT(t)
	image, requests := newRegistry(t, nil)
	r := NewResolver(remote.DefaultTransport, clock.RealClock{})
	answers := make(chan struct{}, 10)
	for range 10 {
		_, _, err := r.Resolve(image, plain(image), Credentials{}, func() { answers <- struct{}{} })
		if err == nil {
			answers <- struct{}{}
		}
	}
	for range 10 {
		<-answers
	}
	found, _, err := r.Resolve(image, plain(image), Credentials{}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(MatchRegexp(`^127\.0\.0\.1:\d+/ocp/release@sha256:[a-f0-9]{64}$`))
	g.Expect(r.digests.query(query{image: image, sources: plain(image)})).To(Succeed(),
		"a caller that read the cache before the answer and queries after it")
	other, err := ParseCredentials([]byte(`{"auths":{}}`))
	g.Expect(err).NotTo(HaveOccurred())
	again, _, err := r.Resolve(image, plain(image), other, nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(found))
	g.Expect(requests.Load()).To(BeEquivalentTo(1))
}

func TestUnknownReleaseIsQueriedAgainLater(t *testing.T) {
	g := NewWithT(t)
	image, requests := newRegistry(t, nil)
	clk := testingclock.NewFakePassiveClock(time.Now())
	r := NewResolver(remote.DefaultTransport, clk)
	unknown := strings.Replace(image, "4.19.3", "4.99.0", 1)
	_, retryAfter, err := resolve(t, r, unknown, Credentials{})
	g.Expect(err).To(MatchError(ErrNotFound))
	g.Expect(retryAfter).To(Equal(firstRetry))
	_, _, err = r.Resolve(unknown, plain(unknown), Credentials{}, nil)
	g.Expect(err).To(MatchError(ErrNotFound))
	g.Expect(requests.Load()).To(BeEquivalentTo(1), "no query before retryAfter")
	for _, next := range []time.Duration{
		10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second,
		lastRetry, lastRetry,
	} {
		clk.SetTime(clk.Now().Add(retryAfter))
		_, retryAfter, err = resolve(t, r, unknown, Credentials{})
		g.Expect(err).To(MatchError(ErrNotFound))
		g.Expect(retryAfter).To(Equal(next))
	}
}

func TestCredentialsOfLongestPrefixAreUsed(t *testing.T) {
	g := NewWithT(t)
	image, _ := newRegistry(t, func(req *http.Request) bool {
		user, password, ok := req.BasicAuth()
		return ok && user == "user" && password == "pass"
	})
	_, _, err := resolve(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), image, Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(ContainSubstring("refuses the credentials"))

	host, _, _ := strings.Cut(image, "/")
	credentials, err := ParseCredentials([]byte(`{"auths":{"` + host + `":{"auth":"d3Jvbmc6d3Jvbmc="},"` + host +
		`/ocp":{"auth":"dXNlcjpwYXNz"}}}`))
	g.Expect(err).NotTo(HaveOccurred())
	_, _, err = resolve(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), image, credentials)
	g.Expect(err).NotTo(HaveOccurred(), "the longest prefix counts")
}

func TestUnreachableRegistryIsUnavailable(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.NotFoundHandler())
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	_, retryAfter, err := resolve(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), host+"/ocp:4.19.3", Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(HaveSuffix(host + ": connection refused"))
	g.Expect(retryAfter).To(BeNumerically(">", 0))
}

// A captive portal answers every request, and so does a proxy.
func TestServerThatIsNoRegistryIsUnavailable(t *testing.T) {
	g := NewWithT(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html><body>secret</body></html>")
	}))
	t.Cleanup(server.Close)
	_, retryAfter, err := resolve(t, NewResolver(remote.DefaultTransport, clock.RealClock{}),
		strings.TrimPrefix(server.URL, "http://")+"/ocp:4.19.3",
		Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(Equal("the registry cannot be queried: " + strings.TrimPrefix(server.URL,
		"http://") + " does not answer as a registry does"))
	g.Expect(retryAfter).To(BeNumerically(">", 0))
}

// TestEndlessTokenIsNotRead: the registry names the token server, and go-containerregistry reads the whole
// token.
func TestEndlessTokenIsNotRead(t *testing.T) {
	g := NewWithT(t)
	sent := atomic.Int64{}
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+server.Listener.Addr().String()+`/token?hush=1"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		for block := make([]byte, 32<<10); ; {
			n, err := w.Write(block)
			sent.Add(int64(n))
			if err != nil {
				return
			}
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	_, _, err := resolve(t, NewResolver(remote.DefaultTransport, clock.RealClock{}), host+"/ocp:4.19.3", Credentials{})
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(HaveSuffix(host + " answers a request for /token with more than 1 MiB"))
	g.Expect(sent.Load()).To(BeNumerically("<", largestAnswer+24<<20))
}

// The error names the host and the cause.
func TestRegistryWithCertificateOfUnknownAuthority(t *testing.T) {
	g := NewWithT(t)
	const ref = "quay.example"
	err := classify(ref, &url.Error{Op: "Get", URL: "https://user:hush@" + ref, Err: x509.UnknownAuthorityError{}}, attemptTimeout)
	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err.Error()).To(HaveSuffix("quay.example: its certificate is signed by an unknown authority (x509)"))
}

func TestErrorOfParseCredentialsHasNoSecret(t *testing.T) {
	_, err := ParseCredentials([]byte(`{"auths": secret`))
	NewWithT(t).Expect(err).To(MatchError(Not(ContainSubstring("secret"))))
}

// measured lets the metrics observe a Resolver, as the manager does.
func measured(r *Resolver) *Resolver {
	r.Observer = Observer{Request: measure.RegistryRequest, Lookup: measure.ReleaseLookup}
	return r
}

func TestRequestsToRegistriesAreMeasured(t *testing.T) {
	g := NewWithT(t)
	count := func(result string) float64 {
		value, err := measuretest.Count("capi_openshift_agent_registry_request_duration_seconds", map[string]string{"result": result})
		g.Expect(err).NotTo(HaveOccurred())
		return value
	}
	image, _ := newRegistry(t, nil)
	locked, _ := newRegistry(t, func(req *http.Request) bool { return req.Header.Get("Authorization") != "" })
	for result, requested := range map[string]string{
		"found": image, "not_found": strings.Replace(image, "4.19.3", "4.99.0", 1),
		"refused": locked, "unavailable": "127.0.0.1:1/ocp/release:4.19.3-x86_64",
	} {
		before, r := count(result), measured(NewResolver(remote.DefaultTransport, clock.RealClock{}))
		_, _, _ = resolve(t, r, requested, Credentials{})
		_, _, _ = r.Resolve(requested, plain(requested), Credentials{}, nil)
		g.Expect(count(result)-before).To(BeEquivalentTo(1), "%s: cached answers are not requested again", result)
	}
}
