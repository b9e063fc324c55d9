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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
)

// publisher is the user agent of the laboratory's own requests, which do not count.
const publisher = "openshift-agent-lab"

// multi is the architecture, in the tag of a release image, of one that is for all of them.
const multi = "multi"

// tagArchitecture is an architecture as tags of release images spell it; empty: x86_64.
func tagArchitecture(architecture string) string {
	switch architecture {
	case "":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return architecture
}

// Registry is an image registry with release images that are empty but for their version.
type Registry struct {
	address string
	// announce, unless nil, hears of each release image by each of its names, before Publish returns.
	announce func(image, version, architecture string) error
	// writer are the options with which the laboratory itself writes.
	writer []remote.Option

	mu       sync.Mutex
	lookups  []string
	releases map[string]release // by image with digest
}

// release is what is known of a release image: its version, and its architecture as its tag spells it.
type release struct{ version, architecture string }

// startRegistry serves a registry until ctx ends. What others ask for passes through what stands before it, unless that is nil.
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

// serveRegistry serves one, with a certificate through https, to those who pass the guard.
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
		// It ends when it is closed.
		_ = server.Serve(listener)
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return r, nil
}

// isPublisher tells the laboratory's own requests.
func isPublisher(request *http.Request) bool { return strings.Contains(request.UserAgent(), publisher) }

func (r *Registry) count(request *http.Request) {
	if strings.Contains(request.URL.Path, "/manifests/") && !isPublisher(request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lookups = append(r.lookups, request.URL.Path)
	}
}

// OCPRepository is where releases of OpenShift are: <version>-<architecture>.
func (r *Registry) OCPRepository() string { return r.address + "/openshift-release-dev/ocp-release" }

// OKDRepository is where releases of OKD are: <version>.
func (r *Registry) OKDRepository() string { return r.address + "/okd/scos-release" }

// Lookups returns the paths of the manifests that were asked for so far.
func (r *Registry) Lookups() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lookups...)
}

// Publish puts the release image of a version for x86_64 into the registry and returns it by digest.
func (r *Registry) Publish(version string) (string, error) { return r.publishFor(version, "x86_64") }

// publishFor does so for an architecture, as tags of release images spell it. OKD's have none in their tags.
func (r *Registry) publishFor(version, architecture string) (string, error) {
	version = strings.TrimPrefix(version, "v")
	image := r.OCPRepository() + ":" + version + "-" + architecture
	if strings.Contains(version, "okd") {
		image = r.OKDRepository() + ":" + version
	}
	return r.publishAs(image, release{version, architecture})
}

// publishAs puts a release image into the registry under a name, and returns it by digest.
func (r *Registry) publishAs(image string, of release) (string, error) {
	byDigest, err := r.write(image, of)
	if err != nil {
		return "", err
	}
	return byDigest, errors.Join(r.know(image, of), r.know(byDigest, of))
}

// publishApart puts the release that a control plane asks for into a repository that is called like its namespace, and
// has it looked up there and nowhere else.
func (r *Registry) publishApart(controlPlane *unstructured.Unstructured) error {
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

// releaseOf is what a control plane asks for.
func releaseOf(controlPlane *unstructured.Unstructured) release {
	version, _ := field(controlPlane, "spec", "version").(string)
	architecture, _ := field(controlPlane, "spec", "openshiftAssistedConfigSpec", "cpuArchitecture").(string)
	return release{strings.TrimPrefix(version, "v"), tagArchitecture(architecture)}
}

// write puts a release image under a name into the registry and returns it by digest.
func (r *Registry) write(image string, of release) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("cannot name release image %s: %w", image, err)
	}
	content, err := mutate.Config(empty.Image,
		v1.Config{Labels: map[string]string{"io.openshift.release": of.version, "architecture": of.architecture}})
	if err != nil {
		return "", fmt.Errorf("cannot make release image %s: %w", image, err)
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

// know remembers what a release image is, wherever it is.
func (r *Registry) know(image string, of release) error {
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

// Version tells the version of a release image that is known; empty for others.
func (r *Registry) Version(image string) string { return r.of(image).version }

func (r *Registry) of(image string) release {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.releases[image]
}
