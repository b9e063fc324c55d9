package release

import (
	"context"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// maxDownloads limits concurrent downloads, and so their memory. A further query gets the answer of a finished one.
const maxDownloads = 4

// Resolver is a Reader for many clusters: it resolves release images to digests, and to the versions of Kubernetes that
// they contain. A process queries each release once, however many clusters use the release, and no caller blocks on a
// registry.
type Resolver struct {
	Reader

	digests    *lookups // image by tag -> image by digest
	kubernetes *lookups // image by digest -> version of Kubernetes
	// downloads has an entry for each running download of the contents of an image.
	downloads chan struct{}
}

// NewResolver returns a Resolver that queries registries through the given transport.
func NewResolver(transport http.RoundTripper, clk clock.PassiveClock) *Resolver {
	r := &Resolver{Reader: *NewReader(transport), downloads: make(chan struct{}, maxDownloads)}
	r.digests = newLookups(clk, func(q query) string { return q.image + " " + q.sources.Version(q.credentials.digest) }, r.findDigest)
	// Contents are verified by their digest: they are the same from any registry.
	r.kubernetes = newLookups(clk, func(q query) string { return digestOf(q.image) }, r.findKubernetesVersion)
	return r
}

// Resolve returns the image by digest, as Digest does. Resolve does not block: the error is ErrPending while a query runs,
// and done is called when the query ends. After ErrNotFound and ErrUnavailable, a call queries again only when
// retryAfter has passed.
func (r *Resolver) Resolve(image string, sources Sources, credentials Credentials, done func()) (byDigest string,
	retryAfter time.Duration, err error,
) {
	return r.digests.get(query{image, sources, credentials}, done)
}

func (r *Resolver) findDigest(q query) (string, error) { return r.digest(context.Background(), q) }

// KubernetesVersion returns the version (v1.33.5) of Kubernetes in a release image by digest. API servers and kubelets
// of the release report this version, those of 4.14 to 4.16 with a hash. Like Resolve, KubernetesVersion does not block.
// The error is ErrNoVersion if the contents have no version.
func (r *Resolver) KubernetesVersion(byDigest string, sources Sources, credentials Credentials, done func()) (version string,
	retryAfter time.Duration, err error,
) {
	return r.kubernetes.get(query{byDigest, sources, credentials}, done)
}

// findKubernetesVersion queries the registries, unless another query has found the version while this one waited.
func (r *Resolver) findKubernetesVersion(q query) (string, error) {
	r.downloads <- struct{}{}
	defer func() { <-r.downloads }()
	if version, ok := r.kubernetes.answers.Get(digestOf(q.image)); ok {
		return version, nil
	}
	contents, err := r.contents(context.Background(), q)
	return contents.Kubernetes, err
}
