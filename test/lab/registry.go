package lab

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/internal/testing/payload"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/openshift"
)

// publisher is the user agent of the lab's own requests, which are not counted.
const publisher = "openshift-agent-lab"

// multi is the architecture in the tag of a multi-architecture release image.
const multi = "multi"

// tagArchitecture returns the notation of an architecture in tags of release images. Empty means x86_64.
func tagArchitecture(architecture string) string {
	switch architecture {
	case "":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return architecture
}

// Registry is an image registry with release images. Their manifests state the version of Kubernetes.
type Registry struct {
	address string
	// announce, if not nil, is called with each name of a release image before Publish returns.
	announce func(image, version, architecture string) error
	// writer are the options of the lab's own writes.
	writer []remote.Option

	mu       sync.Mutex
	lookups  []lookup
	releases map[string]release // by image with digest
}

// lookup is the request of a manifest.
type lookup struct {
	at   time.Time
	path string
}

// release has the version and the architecture (in the notation of tags) of a release image.
type release struct{ version, architecture string }

// startRegistry serves a registry until ctx ends. Requests of other clients pass through before, if not nil.
func startRegistry(ctx context.Context, before func(http.Handler) http.Handler) (*Registry, error) {
	return serveRegistry(ctx, nil, func(images http.Handler) http.Handler {
		if before == nil {
			return images
		}
		guarded := before(images)
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if isPublisher(request) {
				images.ServeHTTP(w, request)
				return
			}
			guarded.ServeHTTP(w, request)
		})
	})
}

// serveRegistry serves a registry, over HTTPS with a certificate, to clients that pass the guard.
func serveRegistry(ctx context.Context, certificate *tls.Certificate, guard func(http.Handler) http.Handler) (*Registry, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the registry: %w", err)
	}
	r := &Registry{address: listener.Addr().String(), releases: map[string]release{}, writer: []remote.Option{remote.WithUserAgent(publisher)}}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler: guard(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			r.count(request)
			images.ServeHTTP(w, request)
		})),
	}
	if certificate != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	}
	go func() {
		// Serve returns an error when the server is closed.
		_ = server.Serve(listener)
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return r, nil
}

// isPublisher reports whether a request is one of the lab's own requests.
func isPublisher(request *http.Request) bool { return strings.Contains(request.UserAgent(), publisher) }

func (r *Registry) count(request *http.Request) {
	if strings.Contains(request.URL.Path, "/manifests/") && !isPublisher(request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lookups = append(r.lookups, lookup{time.Now(), request.URL.Path})
	}
}

// OCPRepository returns the repository of OpenShift releases, with tags <version>-<architecture>.
func (r *Registry) OCPRepository() string { return r.address + "/openshift-release-dev/ocp-release" }

// OKDRepository returns the repository of OKD releases, with tags <version>.
func (r *Registry) OKDRepository() string { return r.address + "/okd/scos-release" }

// Lookups returns the paths of the requested manifests.
func (r *Registry) Lookups() []string { return r.LookupsSince(time.Time{}) }

// LookupsSince returns the paths of the manifests that were requested at or after a time.
func (r *Registry) LookupsSince(begin time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var paths []string
	for _, l := range r.lookups {
		if !l.at.Before(begin) {
			paths = append(paths, l.path)
		}
	}
	return paths
}

// Publish pushes the release image of a version for x86_64 and returns it by digest.
func (r *Registry) Publish(version string) (string, error) { return r.publishFor(version, "x86_64") }

// publishFor is Publish for an architecture in the notation of tags. OKD's tags have no architecture.
func (r *Registry) publishFor(version, architecture string) (string, error) {
	version = strings.TrimPrefix(version, "v")
	image := r.OCPRepository() + ":" + version + "-" + architecture
	if strings.Contains(version, "okd") {
		image = r.OKDRepository() + ":" + version
	}
	return r.publishAs(image, release{version, architecture})
}

// publishAs pushes a release image under a name and returns it by digest.
func (r *Registry) publishAs(image string, of release) (string, error) {
	byDigest, err := r.write(image, of)
	if err != nil {
		return "", err
	}
	return byDigest, errors.Join(r.recordRelease(image, of), r.recordRelease(byDigest, of))
}

// publishSeparately pushes the release of a control plane to a repository named after its namespace, and makes
// the control plane use only this repository.
func (r *Registry) publishSeparately(controlPlane *unstructured.Unstructured) error {
	repository := r.address + "/" + controlPlane.GetNamespace() + "/ocp-release"
	of := releaseOf(controlPlane)
	annotations := controlPlane.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[controlplanev1.ReleaseImageRepositoryOverrideAnnotation] = repository
	controlPlane.SetAnnotations(annotations)
	_, err := r.publishAs(repository+":"+of.version+"-"+of.architecture, of)
	return err
}

// releaseOf returns the release of a control plane.
func releaseOf(controlPlane *unstructured.Unstructured) release {
	version, _ := field(controlPlane, "spec", "distributionVersion").(string)
	architecture, _ := field(controlPlane, "spec", "openshiftAssistedConfigSpec", "cpuArchitecture").(string)
	return release{strings.TrimPrefix(version, "v"), tagArchitecture(architecture)}
}

// write pushes a release image under a name and returns it by digest.
func (r *Registry) write(image string, of release) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("cannot name release image %s: %w", image, err)
	}
	kubernetes, err := openshift.StatedKubernetes(of.version)
	if err != nil {
		kubernetes = "" // a test publishes a release that does not exist
	}
	content, err := payload.Image(payload.Release{Version: of.version, Kubernetes: kubernetes, Architecture: of.architecture})
	if err != nil {
		return "", fmt.Errorf("cannot create release image %s: %w", image, err)
	}
	if err := remote.Write(ref, content, r.writer...); err != nil {
		return "", fmt.Errorf("cannot publish release image %s: %w", image, err)
	}
	digest, err := content.Digest()
	if err != nil {
		return "", fmt.Errorf("cannot compute the digest of %s: %w", image, err)
	}
	return ref.Context().Digest(digest.String()).Name(), nil
}

// recordRelease records the release of an image in any repository.
func (r *Registry) recordRelease(image string, of release) error {
	if r.announce != nil {
		if err := r.announce(image, of.version, of.architecture); err != nil {
			return fmt.Errorf("cannot announce release image %s: %w", image, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.releases[image] = of
	return nil
}

// Version returns the version of a known release image, or "".
func (r *Registry) Version(image string) string { return r.of(image).version }

func (r *Registry) of(image string) release {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.releases[image]
}
