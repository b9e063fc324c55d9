// Package release queries registries for release images: their digests, and the versions of Kubernetes in them.
package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

var (
	// ErrPending reports that a query of the registry is running.
	ErrPending = errors.New("the registry is being queried")
	// ErrNotFound reports that the registry has no such image.
	ErrNotFound = errors.New("the registry has no such image")
	// ErrUnavailable reports that the registry did not answer, or refused the request.
	ErrUnavailable = errors.New("the registry cannot be queried")
	// ErrNoVersion reports that an image does not state one version of Kubernetes, or is no release image.
	ErrNoVersion = errors.New("the image does not state its Kubernetes version")

	errRefused = fmt.Errorf("%w: it refuses the credentials of the pull secret", ErrUnavailable)
)

const (
	// attemptTimeout limits one request to a registry.
	attemptTimeout = 10 * time.Second
	// largestAnswer limits the body of one response of a registry, in bytes, except layers. go-containerregistry reads
	// tokens, errors and manifests whole.
	largestAnswer = 1 << 20
)

// Resolver resolves release images to digests, and to the versions of Kubernetes that they contain. A process queries
// each release once, however many clusters use the release, and no caller blocks on a registry.
type Resolver struct {
	base       http.RoundTripper
	transports *lru.Cache[string, *http.Transport] // PEM certificates -> *http.Transport

	digests    *lookups // image by tag -> image by digest
	kubernetes *lookups // image by digest -> version of Kubernetes
	// downloads has an entry for each running download of the contents of an image.
	downloads chan struct{}
}

// NewTransport returns the transport of go-containerregistry with limits. The transport honors the proxy
// variables of the environment. It connects to a loopback address only for the given registries (host:port),
// which the flags of the manager name.
func NewTransport(registries ...string) http.RoundTripper {
	shared, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return remote.DefaultTransport
	}
	own := shared.Clone()
	own.MaxResponseHeaderBytes, own.OnProxyConnectResponse = bound.HeaderBytes, reach.ProxyAnswer
	own.DialContext = (&dialer{registries: registries, proxy: own.Proxy}).DialContext
	return own
}

// NewResolver returns a Resolver that queries registries through the given transport.
func NewResolver(transport http.RoundTripper, clk clock.PassiveClock) *Resolver {
	r := &Resolver{base: transport, transports: newTransports(), downloads: make(chan struct{}, maxDownloads)}
	r.digests = newLookups(clk, func(q query) string { return q.image + " " + q.sources.Version(q.credentials.digest) }, r.findDigest)
	// Contents are verified by their digest: they are the same from any registry.
	r.kubernetes = newLookups(clk, func(q query) string { return digestOf(q.image) }, r.findKubernetesVersion)
	return r
}

// Resolve returns the image by digest, in the repository of the image even when a mirror gave the digest: hosts
// and assisted-service apply the mirrors. Resolve does not block: the error is ErrPending while a query runs,
// and done is called when the query ends. After ErrNotFound and ErrUnavailable, a call queries again only when
// retryAfter has passed.
func (r *Resolver) Resolve(image string, sources Sources, credentials Credentials, done func()) (byDigest string,
	retryAfter time.Duration, err error,
) {
	return r.digests.get(query{image, sources, credentials}, done)
}

// findDigest queries the registries for the digest of an image.
func (r *Resolver) findDigest(q query) (string, error) {
	byDigest, err := r.digestOfEach(q)
	measure.ReleaseLookup(resultOf(err))
	return byDigest, err
}

func (r *Resolver) digestOfEach(q query) (string, error) {
	repository, err := name.ParseReference(q.image)
	if err != nil {
		return "", fmt.Errorf("%w: %s is no image reference", ErrNotFound, q.image)
	}
	digest, err := queryEach(q, r.digestFrom)
	if err != nil {
		return "", err
	}
	return repository.Context().Digest(digest).Name(), nil
}

// queryEach queries the registries in order until one has the image.
func queryEach[T any](q query, queryOne func(origin) (T, error)) (T, error) {
	var failures []registryFailure
	var none T
	for _, image := range q.sources.images(q.image) {
		at, err := originOf(q, image)
		if err != nil {
			failures = append(failures, registryFailure{bound.Value(image), err})
			continue
		}
		answer, err := queryOne(at)
		if err == nil || errors.Is(err, ErrNoVersion) { // no registry has other contents of this digest
			return answer, err
		}
		failures = append(failures, registryFailure{at.host(), err})
	}
	if len(failures) == 0 {
		return none, blocked(q.image)
	}
	return none, combine(failures)
}

// origin is an image in one registry, and how to query the registry.
type origin struct {
	ref         name.Reference
	insecure    bool
	authorities string
	credentials Credentials
}

func originOf(q query, image string) (origin, error) {
	insecure := slices.Contains(q.sources.Insecure, image)
	ref, err := parse(image, insecure)
	if err != nil {
		return origin{}, fmt.Errorf("%w: %s is no image reference", ErrNotFound, bound.Value(image))
	}
	return origin{ref, insecure, q.sources.Authorities, q.credentials}, nil
}

func (o origin) host() string { return o.ref.Context().RegistryStr() }

// digestFrom queries one registry for a digest.
func (r *Resolver) digestFrom(at origin) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	began := time.Now()
	digest, err := r.head(ctx, at)
	measure.RegistryRequest(resultOf(err), time.Since(began))
	return digest, err
}

// registryFailure is the error of one registry.
type registryFailure struct {
	registry string
	err      error
}

// combine returns the error of all registries. The image does not exist only if no registry has it; a mirror
// without the image proves nothing about the other registries.
func combine(failures []registryFailure) error {
	if len(failures) == 1 {
		return failures[0].err
	}
	worst := slices.IndexFunc(failures, func(f registryFailure) bool { return !errors.Is(f.err, ErrNotFound) })
	if worst < 0 {
		return ErrNotFound
	}
	others := make([]string, 0, len(failures))
	for i, f := range failures {
		switch {
		case i == worst:
		case errors.Is(f.err, ErrNotFound):
			others = append(others, f.registry+" has no such image")
		default:
			others = append(others, strings.TrimPrefix(f.err.Error(), ErrUnavailable.Error()+": "))
		}
	}
	return fmt.Errorf("%w; %s", failures[worst].err, strings.Join(others, "; "))
}

// resultOf returns the label value of metrics for the error of a query.
func resultOf(err error) measure.LookupResult {
	switch {
	case err == nil:
		return measure.Found
	case errors.Is(err, ErrNotFound):
		return measure.NotFound
	case errors.Is(err, errRefused):
		return measure.Refused
	case errors.Is(err, errBlocked):
		return measure.Blocked
	}
	return measure.Unavailable
}

// parse returns the reference to an image. For an insecure registry, go-containerregistry tries plain HTTP
// after HTTPS.
func parse(image string, insecure bool) (name.Reference, error) {
	if insecure {
		return name.ParseReference(image, name.Insecure) //nolint:wrapcheck // the caller replaces the error
	}
	return name.ParseReference(image) //nolint:wrapcheck // the caller replaces the error
}

// head requests the digest with HEAD, so that the registry does not send the manifest.
func (r *Resolver) head(ctx context.Context, at origin) (string, error) {
	descriptor, err := remote.Head(at.ref, append(r.options(at), remote.WithContext(ctx))...)
	if err != nil {
		return "", classify(at.host(), err, attemptTimeout)
	}
	return descriptor.Digest.String(), nil
}

// options returns the options of all requests to a registry: its credentials, and a transport with limits.
func (r *Resolver) options(at origin) []remote.Option {
	guarded := &encrypted{next: r.transportFor(at.authorities)}
	if at.insecure {
		guarded.except = at.host()
	}
	return []remote.Option{
		remote.WithAuth(at.credentials.For(at.ref.Context())), remote.WithTransport(guarded),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	}
}

// classify returns ErrNotFound or ErrUnavailable, with the host and the cause. The text of the registry is left
// out: it may repeat a URL with a token.
func classify(registry string, err error, timeout time.Duration) error {
	var answer *transport.Error
	var tooLarge *bound.TooLargeError
	answered := errors.As(err, &answer)
	switch {
	case answered && answer.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case answered && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return fmt.Errorf("%w (%s answers %d %s)", errRefused, registry, answer.StatusCode, http.StatusText(answer.StatusCode))
	case answered:
		return fmt.Errorf("%w: %s answers %d %s", ErrUnavailable, registry, answer.StatusCode, http.StatusText(answer.StatusCode))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %s gives no answer within %s", ErrUnavailable, registry, timeout)
	case errors.As(err, &tooLarge):
		return fmt.Errorf("%w: %w", ErrUnavailable, tooLarge)
	}
	if errors.Is(err, errLoopback) {
		return fmt.Errorf("%w: %s leads to a loopback address, which is that of the manager's own Pod: set another address in registries.conf, "+
			"as only the flags --ocp-release-repository and --okd-release-repository may name such a registry", ErrUnavailable, registry)
	}
	if cause := reach.Cause(err); cause != "" {
		return fmt.Errorf("%w: %s: %s", ErrUnavailable, registry, cause)
	}
	if errors.Is(err, errNotEncrypted) || errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%w: %s does not speak TLS, and registries.conf does not set insecure = true for it", ErrUnavailable, registry)
	}
	return fmt.Errorf("%w: %s does not answer as a registry does", ErrUnavailable, registry)
}
