package lab

import (
	"context"
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
)

// publisher is the user agent of the laboratory's own requests, which do not count.
const publisher = "openshift-agent-lab"

// Registry is an image registry with release images that are empty but for their version.
type Registry struct {
	address string
	// announce, unless nil, hears of each release image by each of its names, before Publish returns.
	announce func(image, version string) error

	mu       sync.Mutex
	lookups  []string
	versions map[string]string // by image with digest
}

// startRegistry serves a registry until ctx ends.
func startRegistry(ctx context.Context) (*Registry, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the registry: %w", err)
	}
	r := &Registry{address: listener.Addr().String(), versions: map[string]string{}}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			r.count(request)
			images.ServeHTTP(w, request)
		}),
	}
	go func() {
		// It ends when it is closed.
		_ = server.Serve(listener)
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return r, nil
}

func (r *Registry) count(request *http.Request) {
	if strings.Contains(request.URL.Path, "/manifests/") && !strings.Contains(request.UserAgent(), publisher) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lookups = append(r.lookups, request.URL.Path)
	}
}

// OCPRepository is where releases of OpenShift are: <version>-x86_64.
func (r *Registry) OCPRepository() string { return r.address + "/openshift-release-dev/ocp-release" }

// OKDRepository is where releases of OKD are: <version>.
func (r *Registry) OKDRepository() string { return r.address + "/okd/scos-release" }

// Lookups returns the paths of the manifests that were asked for so far.
func (r *Registry) Lookups() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lookups...)
}

// Publish puts the release image of a version into the registry and returns it by digest.
func (r *Registry) Publish(version string) (string, error) {
	version = strings.TrimPrefix(version, "v")
	image := r.OCPRepository() + ":" + version + "-x86_64"
	if strings.Contains(version, "okd") {
		image = r.OKDRepository() + ":" + version
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("cannot name release image %s: %w", image, err)
	}
	release, err := mutate.Config(empty.Image, v1.Config{Labels: map[string]string{"io.openshift.release": version}})
	if err != nil {
		return "", fmt.Errorf("cannot make release image %s: %w", image, err)
	}
	if err := remote.Write(ref, release, remote.WithUserAgent(publisher)); err != nil {
		return "", fmt.Errorf("cannot publish release image %s: %w", image, err)
	}
	digest, err := release.Digest()
	if err != nil {
		return "", fmt.Errorf("cannot compute the digest of %s: %w", image, err)
	}
	byDigest := ref.Context().Digest(digest.String()).Name()
	for _, name := range []string{image, byDigest} {
		if r.announce == nil {
			break
		}
		if err := r.announce(name, version); err != nil {
			return "", fmt.Errorf("cannot announce release image %s: %w", name, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[byDigest] = version
	return byDigest, nil
}

// Version tells the version of a release image that Publish returned; empty for others.
func (r *Registry) Version(image string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[image]
}
