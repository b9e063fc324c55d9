package release

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/lookup"
)

// Reader reads release images from registries. It returns when the registries have answered.
type Reader struct {
	// Observer observes the queries for digests.
	Observer Observer

	base       http.RoundTripper
	transports *lru.Cache[string, *http.Transport] // PEM certificates -> *http.Transport
}

// Observer observes queries for the digests of release images, for metrics. A nil function observes nothing.
type Observer struct {
	// Request observes a request to one registry.
	Request func(lookup.Result, time.Duration)
	// Lookup counts a query, with the common result of all its registries.
	Lookup func(lookup.Result)
}

// NewReader returns a Reader that queries registries through the given transport.
func NewReader(transport http.RoundTripper) *Reader {
	return &Reader{base: transport, transports: newTransports()}
}

// Digest returns the image by digest, in the repository of the image even when a mirror gave the digest: hosts
// and assisted-service apply the mirrors.
func (r *Reader) Digest(ctx context.Context, image string, sources Sources, credentials Credentials) (byDigest string, err error) {
	return r.digest(ctx, query{image, sources, credentials})
}

// Contents returns the statements of a release image by digest. The error is ErrNoVersion if the image does not state its version
// of Kubernetes.
func (r *Reader) Contents(ctx context.Context, byDigest string, sources Sources, credentials Credentials) (Contents, error) {
	return r.contents(ctx, query{byDigest, sources, credentials})
}

// digest queries the registries for the digest of an image.
func (r *Reader) digest(ctx context.Context, q query) (string, error) {
	byDigest, err := r.digestOfEach(ctx, q)
	if r.Observer.Lookup != nil {
		r.Observer.Lookup(resultOf(err))
	}
	return byDigest, err
}

func (r *Reader) digestOfEach(ctx context.Context, q query) (string, error) {
	repository, err := name.ParseReference(q.image)
	if err != nil {
		return "", fmt.Errorf("%w: %s is no image reference", ErrNotFound, q.image)
	}
	digest, err := queryEach(ctx, q, r.digestFrom)
	if err != nil {
		return "", err
	}
	return repository.Context().Digest(digest).Name(), nil
}

// digestFrom queries one registry for a digest.
func (r *Reader) digestFrom(ctx context.Context, at origin) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	began := time.Now()
	digest, err := r.head(ctx, at)
	if r.Observer.Request != nil {
		r.Observer.Request(resultOf(err), time.Since(began))
	}
	return digest, err
}

// contents queries the registries for the contents of an image.
func (r *Reader) contents(ctx context.Context, q query) (Contents, error) {
	if digestOf(q.image) == "" {
		return Contents{}, fmt.Errorf("%w: %s has no digest", ErrNotFound, q.image)
	}
	references, err := queryEach(ctx, q, r.referencesFrom)
	if err != nil {
		return Contents{}, err
	}
	return contentsOf(references)
}
