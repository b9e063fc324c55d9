package release

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/payload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
)

// images is a registry. Requests of the Resolver pass through before, if not nil.
type images struct {
	*WithT
	t    *testing.T
	host string

	mu     sync.Mutex
	before func(w http.ResponseWriter, r *http.Request) (answered bool)
	// manifests and layers are the requested ones, layers without those that before answered.
	manifests, layers int
}

func serveImages(t *testing.T) *images {
	t.Helper()
	served := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s := &images{WithT: NewWithT(t), t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.UserAgent(), "publisher") || !s.answers(w, r) {
			served.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.host = server.Listener.Addr().String()
	return s
}

func (s *images) answers(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	before := s.before
	switch {
	case strings.Contains(r.URL.Path, "/manifests/"):
		s.manifests++
	case strings.Contains(r.URL.Path, "/blobs/"):
		s.layers++
	}
	s.mu.Unlock()
	return before != nil && before(w, r)
}

func (s *images) requests() (manifests, layers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manifests, s.layers
}

func (s *images) answer(before func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = before
}

// push writes an image or an index, and returns its name by digest.
func (s *images) push(content remote.Taggable) string {
	s.t.Helper()
	ref, err := name.ParseReference(s.host + "/ocp/release:pushed")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(remote.Push(ref, content, remote.WithUserAgent("publisher"))).To(Succeed())
	descriptor, err := remote.Head(ref, remote.WithUserAgent("publisher"))
	s.Expect(err).NotTo(HaveOccurred())
	return ref.Context().Digest(descriptor.Digest.String()).Name()
}

func (s *images) pushRelease(of payload.Release) string {
	s.t.Helper()
	image, err := payload.Image(of)
	s.Expect(err).NotTo(HaveOccurred())
	return s.push(image)
}

// pushLayers writes an image with layers, the oldest first.
func (s *images) pushLayers(layers ...[]byte) string {
	s.t.Helper()
	image, err := payload.FromLayers(layers...)
	s.Expect(err).NotTo(HaveOccurred())
	return s.push(image)
}

// layer returns a layer with files.
func (s *images) layer(files ...payload.File) []byte {
	s.t.Helper()
	layer, err := payload.Layer(files...)
	s.Expect(err).NotTo(HaveOccurred())
	return layer
}

// referencesWith returns the layer of a release whose tags have these versions.
func (s *images) referencesWith(versions ...string) []byte {
	s.t.Helper()
	tags := make([]payload.Tag, 0, len(versions))
	for i, version := range versions {
		tags = append(tags, payload.Tag{Name: fmt.Sprintf("image-%d", i), Versions: version})
	}
	text, err := payload.ImageStream("4.20.5", tags...)
	s.Expect(err).NotTo(HaveOccurred())
	return s.layer(payload.File{Name: payload.References, Content: text})
}

var release420 = payload.Release{Version: "4.20.5", Kubernetes: "1.33.5"}

func newKubernetesResolver() *Resolver {
	return NewResolver(remote.DefaultTransport, clock.RealClock{})
}

// kubernetesOf calls KubernetesVersion until the registries have answered.
func kubernetesOf(t *testing.T, r *Resolver, image string, sources Sources, credentials Credentials) (string, time.Duration, error) {
	t.Helper()
	done := make(chan struct{}, 1)
	version, _, err := r.KubernetesVersion(image, sources, credentials, func() { done <- struct{}{} })
	if err == nil {
		return version, 0, nil
	}
	NewWithT(t).Expect(err).To(MatchError(ErrPending))
	<-done
	return r.KubernetesVersion(image, sources, credentials, nil)
}

func TestKubernetesVersionIsReadOnceForEachDigest(t *testing.T) {
	s := serveImages(t)
	image, r := s.pushRelease(release420), newKubernetesResolver()
	version, _, err := kubernetesOf(t, r, image, plain(image), Credentials{})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(version).To(Equal("v1.33.5"), "as kubelets report it")

	other, err := ParseCredentials([]byte(`{"auths":{}}`))
	s.Expect(err).NotTo(HaveOccurred())
	_, digest, _ := strings.Cut(image, "@")
	for _, name := range []string{image, "quay.invalid/other/repository@" + digest} {
		version, _, err = r.KubernetesVersion(name, Sources{Authorities: "PEM"}, other, nil)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(version).To(Equal("v1.33.5"))
	}
	manifests, layers := s.requests()
	s.Expect([]int{manifests, layers}).To(Equal([]int{1, 1}), "the newest layer has the file")
}

// A restarted hub queries one release for many clusters with their own pull secrets.
func TestWaitingQueryUsesVersionOfFinishedDownload(t *testing.T) {
	s := serveImages(t)
	image, r := s.pushRelease(release420), newKubernetesResolver()
	block, running := make(chan struct{}), atomic.Int32{}
	unblock := sync.OnceFunc(func() { close(block) })
	t.Cleanup(unblock)
	s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") {
			running.Add(1)
			<-block
		}
		return false
	})
	const clusters = 3 * maxDownloads
	done := make(chan struct{}, clusters)
	for i := range clusters {
		credentials, err := ParseCredentials(fmt.Appendf(nil, `{"auths":{"cluster-%d":{}}}`, i))
		s.Expect(err).NotTo(HaveOccurred())
		_, _, err = r.KubernetesVersion(image, plain(image), credentials, func() { done <- struct{}{} })
		s.Expect(err).To(MatchError(ErrPending))
	}
	s.Eventually(running.Load).Should(BeEquivalentTo(maxDownloads))
	s.Consistently(running.Load, 100*time.Millisecond).Should(BeEquivalentTo(maxDownloads))
	unblock()
	for range clusters {
		<-done
	}
	s.Expect(running.Load()).To(BeEquivalentTo(maxDownloads), "the others waited, and read the answer")
}

func TestKubernetesVersionOfMultiArchitectureRelease(t *testing.T) {
	of := func(platform *v1.Platform, kubernetes string) mutate.IndexAddendum {
		image, err := payload.Image(payload.Release{Version: "4.20.5", Kubernetes: kubernetes})
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}}
	}
	attestation := of(&v1.Platform{OS: "unknown", Architecture: "unknown"}, "1.1.1")
	arm := of(&v1.Platform{OS: "linux", Architecture: "arm64"}, "1.33.4")
	intel := of(&v1.Platform{OS: "linux", Architecture: "amd64"}, "1.33.5")
	for situation, tc := range map[string]struct {
		images []mutate.IndexAddendum
		want   string
	}{
		"amd64":          {[]mutate.IndexAddendum{attestation, arm, intel}, "v1.33.5"},
		"without amd64":  {[]mutate.IndexAddendum{attestation, arm}, "v1.33.4"},
		"without images": {[]mutate.IndexAddendum{attestation}, ""},
	} {
		t.Run(situation, func(t *testing.T) {
			s := serveImages(t)
			image := s.push(mutate.AppendManifests(empty.Index, tc.images...))
			version, _, err := kubernetesOf(t, newKubernetesResolver(), image, plain(image), Credentials{})
			s.Expect(version).To(Equal(tc.want))
			if tc.want == "" {
				s.Expect(err).To(MatchError(ErrNoVersion))
				s.Expect(err).To(MatchError(HaveSuffix("its index has no image for Linux")))
			}
		})
	}
}

// The index of an index is not followed.
func TestNestedIndexHasNoVersion(t *testing.T) {
	s := serveImages(t)
	inner := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: empty.Image})
	image := s.push(mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: inner, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	}))
	_, _, err := kubernetesOf(t, newKubernetesResolver(), image, plain(image), Credentials{})
	s.Expect(err).To(MatchError(ErrNoVersion))
}

func TestContentsOfReleaseImage(t *testing.T) {
	s := serveImages(t)
	file := func(name, content string) payload.File { return payload.File{Name: name, Content: []byte(content)} }
	references := func(content string) []byte { return s.layer(file(payload.References, content)) }
	noise := make([]byte, largestLayer+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	other, release := s.layer(file("etc/passwd", "root")), s.referencesWith("kubernetes=1.33.5")
	files := make([]payload.File, maxFiles)
	for i := range files {
		files[i] = file(fmt.Sprintf("release-manifests/%d.yaml", i), "")
	}
	tags := func(n int) string {
		return `{"kind":"ImageStream","spec":{"tags":[` + strings.Repeat(`{},`, n-1) +
			`{"annotations":{"io.openshift.build.versions":"kubernetes=1.33.5"}}]}}`
	}
	const stated = "v1.33.5"
	for situation, tc := range map[string]struct {
		layers [][]byte
		want   string // the version, or the end of the error
	}{
		"one of several components": {
			[][]byte{s.referencesWith("", "machine-os=9.6", "kubectl=1.32.1, kubernetes=1.33.5,etcd=3.5")}, stated,
		},
		"several equal values": {[][]byte{s.referencesWith("kubernetes=1.33.5", "kubernetes=1.33.5")}, stated},
		"with v and hash":      {[][]byte{s.referencesWith("kubernetes=v1.29.6+aba1e8d")}, "v1.29.6"},
		"different values":     {[][]byte{s.referencesWith("kubernetes=1.33.5", "kubernetes=1.33.6")}, "has v1.33.5 and v1.33.6"},
		"no component kubernetes": {
			[][]byte{s.referencesWith("kubernetes-tests=1.33.5", "")}, "has kubernetes in annotation io.openshift.build.versions",
		},
		"no version":        {[][]byte{s.referencesWith("kubernetes=")}, "has kubernetes="},
		"invalid version":   {[][]byte{s.referencesWith("kubernetes=1.33")}, "has kubernetes=1.33"},
		"OpenShift version": {[][]byte{s.referencesWith("kubernetes=4.20.5")}, "has kubernetes=4.20.5"},
		"long version": {
			[][]byte{s.referencesWith("kubernetes=1.33.5-" + strings.Repeat("x", 1000))}, "xxxxx…",
		},
		"in third newest layer": {[][]byte{release, other, other}, stated},
		"in fourth newest layer": {
			[][]byte{release, other, other, other},
			"newest 3 layers have no file " + payload.References + ", so it is no release image",
		},
		"newest layer counts":    {[][]byte{s.referencesWith("kubernetes=1.32.1"), release}, stated},
		"path with dot":          {[][]byte{s.layer(file("./"+payload.References, mustText(s, "kubernetes=1.33.5")))}, stated},
		"other file of the name": {[][]byte{s.layer(file("etc/"+payload.References, "{}"))}, "so it is no release image"},
		"no layers":              {nil, "so it is no release image"},
		"layer without gzip":     {[][]byte{[]byte("layer")}, "a layer is not compressed by gzip"},
		"layer without archive":  {[][]byte{compressed(s, []byte(strings.Repeat("layer", 1000)))}, "a layer is not a valid archive"},
		"truncated gzip":         {[][]byte{release[:len(release)/2]}, "a layer is not a valid archive"},
		"larger layer is not read": {
			[][]byte{release, noise}, stated,
		},
		"decompressed layer larger than the limit": {
			[][]byte{s.layer(payload.File{Name: "zeros", Content: make([]byte, largestContents)}, file(payload.References, "{}"))},
			"a layer has more than 128 MiB",
		},
		"as many files as the limit": {
			[][]byte{s.layer(append(files[1:len(files):len(files)], file(payload.References, mustText(s, "kubernetes=1.33.5")))...)}, stated,
		},
		"more files than the limit": {
			[][]byte{s.layer(append(files[:len(files):len(files)], file(payload.References, mustText(s, "kubernetes=1.33.5")))...)},
			"a layer has more than 20000 files",
		},
		"file larger than the limit": {
			[][]byte{references(strings.Repeat(" ", largestReferences+1))}, payload.References + " has more than 4 MiB",
		},
		"file of the limit":         {[][]byte{references(strings.Repeat(" ", largestReferences))}, "is not a valid ImageStream"},
		"as many tags as the limit": {[][]byte{references(tags(maxTags))}, stated},
		"more tags than the limit":  {[][]byte{references(tags(maxTags + 1))}, payload.References + " has more than 2000 tags"},
		"no JSON":                   {[][]byte{references("kind: ImageStream")}, "is not a valid ImageStream"},
		"other kind":                {[][]byte{references(`{"kind":"Service"}`)}, "is not a valid ImageStream"},
		"tags of another type": {
			[][]byte{references(`{"kind":"ImageStream","spec":{"tags":{"a":1}}}`)}, "annotation io.openshift.build.versions",
		},
		"no tags": {
			[][]byte{references(`{"kind":"ImageStream","spec":{"tags":null}}`)}, "annotation io.openshift.build.versions",
		},
		"nested arrays": {
			[][]byte{references(`{"kind":"ImageStream","spec":{"tags":` + strings.Repeat("[", 1<<20) + `}}`)}, "is not a valid ImageStream",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			image := s.pushLayers(tc.layers...)
			version, retryAfter, err := kubernetesOf(t, newKubernetesResolver(), image, plain(image), Credentials{})
			if strings.HasPrefix(tc.want, "v1.") {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(version).To(Equal(tc.want))
				return
			}
			g.Expect(err).To(MatchError(ErrNoVersion))
			g.Expect(err).To(MatchError(HaveSuffix(tc.want)))
			g.Expect(len(err.Error())).To(BeNumerically("<", 300))
			g.Expect(retryAfter).To(BeNumerically("~", contentRetry, time.Minute), "the contents do not change")
		})
	}
}

func mustText(s *images, versions string) string {
	s.t.Helper()
	text, err := payload.ImageStream("4.20.5", payload.Tag{Name: "hyperkube", Versions: versions})
	s.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func TestMissingVersionIsReadAgainLater(t *testing.T) {
	s := serveImages(t)
	image, clk := s.pushLayers(s.layer()), testingclock.NewFakePassiveClock(time.Now())
	r := NewResolver(remote.DefaultTransport, clk)
	_, retryAfter, err := kubernetesOf(t, r, image, plain(image), Credentials{})
	s.Expect(err).To(MatchError(ErrNoVersion))
	s.Expect(retryAfter).To(Equal(contentRetry))
	clk.SetTime(clk.Now().Add(contentRetry))
	_, _, err = r.KubernetesVersion(image, plain(image), Credentials{}, func() {})
	s.Expect(err).To(MatchError(ErrPending))
}

// The answer counts for all clusters of the hub, so no registry may forge it.
func TestForgedContentsAreRefused(t *testing.T) {
	s := serveImages(t)
	image := s.pushRelease(release420)
	forged := s.referencesWith("kubernetes=1.1.1")
	for situation, part := range map[string]string{"layer": "/blobs/", "manifest": "/manifests/"} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s.answer(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.Contains(r.URL.Path, part) {
					_, _ = w.Write(forged)
					return true
				}
				return false
			})
			_, _, err := kubernetesOf(t, newKubernetesResolver(), image, plain(image), Credentials{})
			g.Expect(err).To(MatchError(ErrUnavailable))
			g.Expect(err).To(MatchError(HaveSuffix(s.host + " does not answer as a registry does")))
		})
	}
}

func TestLayersAndManifestsOfRegistryAreLimited(t *testing.T) {
	s := serveImages(t)
	image := s.pushRelease(release420)
	endless := func(w http.ResponseWriter) {
		for block := make([]byte, 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}
	for situation, tc := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request) bool
		want   string
	}{
		"manifest": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/manifests/") {
				endless(w)
			}
			return strings.Contains(r.URL.Path, "/manifests/")
		}, s.host + " answers a request for /v2/ocp/release/manifests/.* with more than 1 MiB$"},
		"layer": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				endless(w)
			}
			return strings.Contains(r.URL.Path, "/blobs/")
		}, s.host + " answers a request for /v2/ocp/release/blobs/.* with more than 16 MiB$"},
		"layer in the store of the registry": {func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case strings.Contains(r.URL.Path, "/blobs/"):
				http.Redirect(w, r, "/store?signature=secret", http.StatusTemporaryRedirect)
			case r.URL.Path == "/store":
				endless(w)
			default:
				return false
			}
			return true
		}, s.host + " answers a request for /store with more than 16 MiB$"},
		"layer in a store without TLS": {func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, "http://store.invalid/layer?signature=secret", http.StatusTemporaryRedirect)
			}
			return strings.Contains(r.URL.Path, "/blobs/")
		}, s.host + " does not speak TLS"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s.answer(tc.answer)
			_, _, err := kubernetesOf(t, newKubernetesResolver(), image, plain(image), Credentials{})
			g.Expect(err).To(MatchError(ErrUnavailable))
			g.Expect(err.Error()).To(MatchRegexp(tc.want))
			g.Expect(err.Error()).NotTo(ContainSubstring("secret"))
		})
	}
}

// Registries keep layers in object stores. The layer in the store may be larger than other answers.
func TestLayerIsReadFromStore(t *testing.T) {
	s := serveImages(t)
	noise := make([]byte, 2*largestAnswer)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	references := payload.File{Name: payload.References, Content: []byte(mustText(s, "kubernetes=1.33.5"))}
	layer := s.layer(payload.File{Name: "noise", Content: noise}, references)
	image := s.pushLayers(layer)
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, "/store/layer?signature=secret", http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/store/"):
			_, _ = w.Write(layer)
		default:
			return false
		}
		return true
	})
	version, _, err := kubernetesOf(t, newKubernetesResolver(), image, plain(image), Credentials{})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(version).To(Equal("v1.33.5"))
}

func TestKubernetesVersionIsReadThroughMirrors(t *testing.T) {
	empty, mirror := serveImages(t), serveImages(t)
	_, digest, _ := strings.Cut(mirror.pushRelease(release420), "@")
	source := "quay.invalid/ocp/release@" + digest
	mirrors := []string{empty.host + "/ocp/release@" + digest, mirror.host + "/ocp/release@" + digest}
	sources := Sources{Mirrors: mirrors, Insecure: mirrors, Blocked: true}
	version, _, err := kubernetesOf(t, newKubernetesResolver(), source, sources, Credentials{})
	mirror.Expect(err).NotTo(HaveOccurred())
	mirror.Expect(version).To(Equal("v1.33.5"))
}

// Another registry has no other contents of a digest.
func TestRegistriesAreNotQueriedAfterContentsWithoutVersion(t *testing.T) {
	mirror, source := serveImages(t), serveImages(t)
	image := mirror.pushLayers(mirror.layer())
	_, digest, _ := strings.Cut(image, "@")
	other := source.host + "/ocp/release@" + digest
	sources := Sources{Mirrors: []string{image}, Insecure: []string{image, other}}
	_, _, err := kubernetesOf(t, newKubernetesResolver(), other, sources, Credentials{})
	mirror.Expect(err).To(MatchError(ErrNoVersion))
	manifests, _ := source.requests()
	mirror.Expect(manifests).To(BeZero())
}

func TestUnknownKubernetesVersionHasItsCause(t *testing.T) {
	s := serveImages(t)
	image := s.pushRelease(release420)
	credentials, err := ParseCredentials([]byte(`{"auths":{"` + s.host + `":{"auth":"dXNlcjpodXNo"}}}`))
	s.Expect(err).NotTo(HaveOccurred())
	status := func(code int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"errors":[{"code":"DENIED","message":"hush"}]}`)
			return true
		}
	}
	absent := regexp.MustCompile("[0-9a-f]{64}").ReplaceAllString(image, strings.Repeat("a", 64))
	for situation, tc := range map[string]struct {
		image   string
		sources Sources
		answer  func(http.ResponseWriter, *http.Request) bool
		is      error
		want    string
	}{
		"refused":              {image, plain(image), status(http.StatusUnauthorized), ErrRefused, s.host + " answers 401 Unauthorized)"},
		"registry fails":       {image, plain(image), status(http.StatusBadGateway), ErrUnavailable, s.host + " answers 502 Bad Gateway"},
		"image does not exist": {absent, plain(absent), nil, ErrNotFound, "the registry has no such image"},
		"unreachable": {
			"127.0.0.1:1/ocp@sha256:" + strings.Repeat("a", 64), Sources{}, nil, ErrUnavailable, "127.0.0.1:1: connection refused",
		},
		"blocked":       {image, Sources{Blocked: true}, nil, errBlocked, "names no mirror to pull it from by digest"},
		"image by tag":  {s.host + "/ocp/release:pushed", plain(image), nil, ErrNotFound, "pushed has no digest"},
		"no image name": {"@sha256:a", Sources{}, nil, ErrNotFound, "is no image reference"},
		"without TLS":   {image, Sources{}, nil, ErrUnavailable, "does not set insecure = true for it"},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			s.answer(tc.answer)
			_, retryAfter, err := kubernetesOf(t, newKubernetesResolver(), tc.image, tc.sources, credentials)
			g.Expect(err).To(MatchError(tc.is))
			g.Expect(err).To(MatchError(HaveSuffix(tc.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("hush"))
			g.Expect(retryAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", firstRetry)))
		})
	}
}

// deadlines records the remaining time of requests.
type deadlines struct {
	next http.RoundTripper
	mu   sync.Mutex
	left []time.Duration
}

func (d *deadlines) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, _ := r.Context().Deadline()
	d.mu.Lock()
	d.left = append(d.left, time.Until(deadline))
	d.mu.Unlock()
	return d.next.RoundTrip(r)
}

func TestDownloadIsLimitedInTime(t *testing.T) {
	s := serveImages(t)
	image, transport := s.pushRelease(release420), &deadlines{next: http.DefaultTransport}
	_, _, err := kubernetesOf(t, NewResolver(transport, clock.RealClock{}), image, plain(image), Credentials{})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(transport.left).To(And(Not(BeEmpty()), HaveEach(And(BeNumerically(">", 0), BeNumerically("<=", downloadTimeout)))))
}

func FuzzReferences(f *testing.F) {
	text, err := payload.ImageStream("4.20.5", payload.Tag{Name: "hyperkube", Versions: "kubernetes=1.33.5"})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{string(text), "", "null", `{"kind":"ImageStream","spec":{"tags":[{"annotations":null},null]}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, references []byte) {
		g := NewWithT(t)
		contents, err := contentsOf(references)
		if err != nil {
			g.Expect(err).To(MatchError(ErrNoVersion))
			g.Expect(len(err.Error())).To(BeNumerically("<", 400))
			return
		}
		g.Expect(contents.Kubernetes).To(MatchRegexp(`^v1\.\d+\.\d+`))
		g.Expect(contents.Kubernetes).NotTo(ContainSubstring("+"))
		g.Expect(len(contents.Release)).To(BeNumerically("<=", bound.ValueBytes))
	})
}

func FuzzLayer(f *testing.F) {
	text, err := payload.ImageStream("4.20.5")
	if err != nil {
		f.Fatal(err)
	}
	layer, err := payload.Layer(payload.File{Name: payload.References, Content: text})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(layer)
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, layer []byte) {
		content, err := extract(bytes.NewReader(layer))
		g := NewWithT(t)
		if err != nil {
			g.Expect(err).To(MatchError(ErrNoVersion))
		}
		g.Expect(len(content)).To(BeNumerically("<=", largestReferences))
	})
}

// compressed compresses a text by gzip.
func compressed(s *images, text []byte) []byte {
	s.t.Helper()
	var content bytes.Buffer
	w := gzip.NewWriter(&content)
	_, err := w.Write(text)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(w.Close()).To(Succeed())
	return content.Bytes()
}
