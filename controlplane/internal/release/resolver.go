// Package release queries registries for the digests of release images.
package release

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/wait"
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

	errRefused = fmt.Errorf("%w: it refuses the credentials of the pull secret", ErrUnavailable)
)

const (
	// attemptTimeout limits one request to a registry.
	attemptTimeout = 10 * time.Second
	// The delay before a failed query is repeated doubles from firstRetry to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
	// cacheSize limits the cached digests and the cached failures. Far fewer releases are installed at a time.
	cacheSize = 512
	// largestAnswer limits the body of one response of a registry, in bytes. go-containerregistry reads tokens
	// and errors whole; manifests are not read.
	largestAnswer = 1 << 20
)

// Resolver resolves release images to digests. A process queries each release once, however many clusters use
// the release, and no caller blocks on a registry.
type Resolver struct {
	base  http.RoundTripper
	clock clock.PassiveClock

	queries    singleflight.Group
	resolved   *lru.Cache[string, string]          // image by tag, and its sources -> image by digest
	failures   *lru.Cache[string, failure]         // key of the failure -> failure
	transports *lru.Cache[string, *http.Transport] // PEM certificates -> *http.Transport
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

type failure struct {
	err     error
	retryAt time.Time
	delays  wait.Backoff
}

// NewResolver returns a Resolver that queries registries through the given transport.
func NewResolver(transport http.RoundTripper, clk clock.PassiveClock) *Resolver {
	return &Resolver{
		base: transport, clock: clk, resolved: lru.New[string, string](cacheSize),
		failures: lru.New[string, failure](cacheSize), transports: newTransports(),
	}
}

// query is a request for the digest of an image, with the sources and credentials to use.
type query struct {
	image       string
	sources     Sources
	credentials Credentials
}

// answerKey and failureKey are keys of the caches. Any credentials that a registry accepts give the same
// answer, so only failureKey depends on them.
func (q query) answerKey() string  { return q.image + " " + q.sources.Version(q.credentials.digest) }
func (q query) failureKey() string { return q.answerKey() + " " + q.credentials.digest }

// Resolve returns the image by digest, in the repository of the image even when a mirror gave the digest: hosts
// and assisted-service apply the mirrors. Resolve does not block: the error is ErrPending while a query runs,
// and done is called when the query ends. After ErrNotFound and ErrUnavailable, a call queries again only when
// retryAfter has passed.
func (r *Resolver) Resolve(image string, sources Sources, credentials Credentials, done func()) (byDigest string,
	retryAfter time.Duration, err error,
) {
	q := query{image, sources, credentials}
	byDigest, retryAfter, err = r.cached(q)
	if errors.Is(err, ErrPending) {
		go func() {
			_, _, _ = r.queries.Do(q.failureKey(), func() (any, error) { return nil, r.resolve(q) })
			done()
		}()
	}
	return byDigest, retryAfter, err
}

// cached returns the cached answer or failure, or ErrPending if a query is due.
func (r *Resolver) cached(q query) (byDigest string, retryAfter time.Duration, err error) {
	if found, ok := r.resolved.Get(q.answerKey()); ok {
		return found, 0, nil
	}
	last := r.lastFailure(q)
	if left := last.retryAt.Sub(r.clock.Now()); left > 0 {
		return "", left, last.err
	}
	return "", 0, ErrPending
}

// lastFailure returns the last failure of a query. Without a failure, only the delays are set.
func (r *Resolver) lastFailure(q query) failure {
	if last, ok := r.failures.Get(q.failureKey()); ok {
		return last
	}
	return failure{delays: wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: math.MaxInt}}
}

// resolve queries the registries and caches the result, unless another caller has cached a result since Resolve
// read the cache.
func (r *Resolver) resolve(q query) error {
	if _, _, err := r.cached(q); !errors.Is(err, ErrPending) {
		return err
	}
	byDigest, err := r.queryEach(q)
	measure.ReleaseLookup(resultOf(err))
	if err != nil {
		f := r.lastFailure(q)
		f.err, f.retryAt = err, r.clock.Now().Add(f.delays.Step())
		r.failures.Add(q.failureKey(), f)
		return err
	}
	r.resolved.Add(q.answerKey(), byDigest)
	r.failures.Remove(q.failureKey())
	return nil
}

// queryEach queries the registries in order until one has the image.
func (r *Resolver) queryEach(q query) (string, error) {
	repository, err := name.ParseReference(q.image)
	if err != nil {
		return "", fmt.Errorf("%w: %s is no image reference", ErrNotFound, q.image)
	}
	var failures []registryFailure
	for _, image := range q.sources.images(q.image) {
		digest, failed := r.queryOne(image, q)
		if failed.err == nil {
			return repository.Context().Digest(digest).Name(), nil
		}
		failures = append(failures, failed)
	}
	return "", combine(failures)
}

// queryOne queries one registry, with the credentials for its repository.
func (r *Resolver) queryOne(image string, q query) (digest string, failed registryFailure) {
	insecure := slices.Contains(q.sources.Insecure, image)
	ref, err := parse(image, insecure)
	if err != nil {
		return "", registryFailure{bound.Value(image), fmt.Errorf("%w: %s is no image reference", ErrNotFound, bound.Value(image))}
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	began := time.Now()
	digest, err = r.head(ctx, ref, q, insecure)
	measure.RegistryRequest(resultOf(err), time.Since(began))
	return digest, registryFailure{ref.Context().RegistryStr(), err}
}

// registryFailure is the error of one registry.
type registryFailure struct {
	registry string
	err      error
}

// combine returns the error of all registries. The image does not exist only if no registry has it; a mirror
// without the image proves nothing about the other registries.
func combine(failures []registryFailure) error {
	switch len(failures) {
	case 0:
		return errBlocked
	case 1:
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
func (r *Resolver) head(ctx context.Context, ref name.Reference, q query, insecure bool) (string, error) {
	guarded := &encrypted{next: r.transportFor(q.sources.Authorities)}
	if insecure {
		guarded.except = ref.Context().RegistryStr()
	}
	descriptor, err := remote.Head(ref,
		remote.WithContext(ctx),
		remote.WithAuth(q.credentials.For(ref.Context())),
		remote.WithTransport(guarded),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	)
	if err != nil {
		return "", classify(ref.Context().RegistryStr(), err)
	}
	return descriptor.Digest.String(), nil
}

// classify returns ErrNotFound or ErrUnavailable, with the host and the cause. The text of the registry is left
// out: it may repeat a URL with a token.
func classify(registry string, err error) error {
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
		return fmt.Errorf("%w: %s gives no answer within %s", ErrUnavailable, registry, attemptTimeout)
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
