// Package release asks registries for the digests of release images.
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

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/reach"
)

var (
	// ErrPending says that the registry is being asked.
	ErrPending = errors.New("the registry is being asked")
	// ErrNotFound says that the registry has no such image.
	ErrNotFound = errors.New("the registry has no such image")
	// ErrUnavailable says that the registry gave no answer, or refused one.
	ErrUnavailable = errors.New("the registry cannot be asked")

	errRefused = fmt.Errorf("%w: it refuses the credentials of the pull secret", ErrUnavailable)
)

const (
	// attemptTimeout limits one question to a registry.
	attemptTimeout = 10 * time.Second
	// The time until a question that failed is asked again doubles from firstRetry to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
	// remembered is the number of releases and of failures that are remembered, far more than are installed at a time.
	remembered = 512
	// largestAnswer is the limit of one answer of a registry, in bytes. It is read whole where it is a token or an
	// error; manifests are not read.
	largestAnswer = 1 << 20
)

// Resolver finds the digests of release images. A release is asked for once in the life of the process, however many clusters want it, and
// no caller waits for a registry.
type Resolver struct {
	base http.RoundTripper
	now  func() time.Time

	queries    singleflight.Group
	resolved   *lru.Cache[string, string]          // image by tag, and its sources -> image by digest
	failures   *lru.Cache[string, failure]         // question -> failure
	transports *lru.Cache[string, *http.Transport] // PEM certificates -> *http.Transport
}

// NewTransport returns the transport of go-containerregistry with limits. It honors the proxy variables of the
// environment, and connects to a loopback address only for the given registries (with their ports), which the flags of
// the manager name.
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
func NewResolver(transport http.RoundTripper) *Resolver {
	return &Resolver{base: transport, now: time.Now, resolved: lru.New[string, string](remembered), failures: lru.New[string, failure](remembered), transports: newTransports()}
}

// question is what a registry is asked, and with what.
type question struct {
	image       string
	sources     Sources
	credentials Credentials
}

// answer is the key of an answer, failure that of a failure. A registry gives the same answer whatever the credentials.
func (q question) answer() string  { return q.image + " " + q.sources.Version(q.credentials.digest) }
func (q question) failure() string { return q.answer() + " " + q.credentials.digest }

// Resolve returns the image by digest, in the repository of the image, also when a mirror gave the digest: hosts and
// assisted-service know the mirrors. It does not wait: the error is ErrPending while the registry is being asked, and
// done is called when it has answered. After ErrNotFound and ErrUnavailable, retryAfter is the time after which another
// call asks again.
func (r *Resolver) Resolve(image string, sources Sources, credentials Credentials, done func()) (byDigest string, retryAfter time.Duration, err error) {
	q := question{image, sources, credentials}
	byDigest, retryAfter, err = r.known(q)
	if errors.Is(err, ErrPending) {
		go func() {
			_, _, _ = r.queries.Do(q.failure(), func() (any, error) { return nil, r.query(q) })
			done()
		}()
	}
	return byDigest, retryAfter, err
}

// known is the answer without asking.
func (r *Resolver) known(q question) (byDigest string, retryAfter time.Duration, err error) {
	if found, ok := r.resolved.Get(q.answer()); ok {
		return found, 0, nil
	}
	last := r.lastFailure(q)
	if left := last.retryAt.Sub(r.now()); left > 0 {
		return "", left, last.err
	}
	return "", 0, ErrPending
}

// lastFailure is what came of the question the last time. Without one, only its delays are set.
func (r *Resolver) lastFailure(q question) failure {
	if last, ok := r.failures.Get(q.failure()); ok {
		return last
	}
	return failure{delays: wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: math.MaxInt}}
}

// query asks the registries and remembers what they say, unless they have answered since Resolve looked.
func (r *Resolver) query(q question) error {
	if _, _, err := r.known(q); !errors.Is(err, ErrPending) {
		return err
	}
	byDigest, err := r.queryEach(q)
	measure.ReleaseLookup(resultOf(err))
	if err != nil {
		f := r.lastFailure(q)
		f.err, f.retryAt = err, r.now().Add(f.delays.Step())
		r.failures.Add(q.failure(), f)
		return err
	}
	r.resolved.Add(q.answer(), byDigest)
	r.failures.Remove(q.failure())
	return nil
}

// queryEach asks one registry after the other until one has the image.
func (r *Resolver) queryEach(q question) (string, error) {
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
	return "", together(failures)
}

// queryOne asks one registry. The credentials are those of its own repository.
func (r *Resolver) queryOne(image string, q question) (digest string, failed registryFailure) {
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

// together is the error of all registries. That a mirror has no such image is no news of the others: only when no
// registry has the image it does not exist.
func together(failures []registryFailure) error {
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

// resultOf is how metrics call the answer of a registry.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "found"
	case errors.Is(err, ErrNotFound):
		return "not_found"
	case errors.Is(err, errRefused):
		return "refused"
	}
	return "unavailable"
}

// parse returns the reference to an image. Of an insecure registry go-containerregistry tries plain HTTP after HTTPS.
func parse(image string, insecure bool) (name.Reference, error) {
	if insecure {
		return name.ParseReference(image, name.Insecure) //nolint:wrapcheck // the caller replaces the error
	}
	return name.ParseReference(image) //nolint:wrapcheck // the caller replaces the error
}

// head asks the registry; only the manifest's header is transferred.
func (r *Resolver) head(ctx context.Context, ref name.Reference, q question, insecure bool) (string, error) {
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

// classify returns whether the image or the registry is the problem, with the host that was asked and the cause. What
// the registry itself writes is left out: it may repeat a URL with a token.
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
