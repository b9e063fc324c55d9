// Package release asks registries for the digests of release images.
package release

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/lru"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
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
	// largestAnswer is the limit of one answer of a registry, in bytes. It is read whole where it is a token or an error; manifests are not read.
	largestAnswer = 1 << 20
)

// Resolver finds the digests of release images. A release is asked for once in the life of the process, however many clusters want it, and
// no caller waits for a registry.
type Resolver struct {
	transport http.RoundTripper
	now       func() time.Time

	asked    singleflight.Group
	resolved *lru.Cache // image by tag -> image by digest
	failures *lru.Cache // question -> failure
}

// defaultTransport is that of go-containerregistry with limits.
func defaultTransport() http.RoundTripper {
	shared, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return remote.DefaultTransport
	}
	own := shared.Clone()
	own.MaxResponseHeaderBytes, own.OnProxyConnectResponse = bound.HeaderBytes, reach.ProxyAnswer
	return own
}

type failure struct {
	err     error
	retryAt time.Time
	delays  wait.Backoff
}

// NewResolver returns a Resolver that asks registries through the given transport; nil means the default one, which honours the proxy
// variables of the environment.
func NewResolver(transport http.RoundTripper) *Resolver {
	if transport == nil {
		transport = defaultTransport()
	}
	return &Resolver{transport: bound.Answers(transport, func(*http.Response) int64 { return largestAnswer }), now: time.Now, resolved: lru.New(remembered), failures: lru.New(remembered)}
}

// Resolve returns the image by digest. It does not wait: the error is ErrPending while the registry is being asked, and done is called when it
// has answered. After ErrNotFound and ErrUnavailable, retryAfter is the time after which another call asks again.
func (r *Resolver) Resolve(image string, credentials Credentials, done func()) (byDigest string, retryAfter time.Duration, err error) {
	question := image + " " + credentials.digest
	byDigest, retryAfter, err = r.known(image, question)
	if errors.Is(err, ErrPending) {
		go func() {
			_, _, _ = r.asked.Do(question, func() (any, error) { return nil, r.ask(image, question, credentials) })
			done()
		}()
	}
	return byDigest, retryAfter, err
}

// known is the answer without asking.
func (r *Resolver) known(image, question string) (byDigest string, retryAfter time.Duration, err error) {
	if found, ok := r.resolved.Get(image); ok {
		return found.(string), 0, nil //nolint:forcetypeassert // nothing else is put in
	}
	last := r.lastFailure(question)
	if left := last.retryAt.Sub(r.now()); left > 0 {
		return "", left, last.err
	}
	return "", 0, ErrPending
}

// lastFailure is what came of the question the last time. Without one, only its delays are set.
func (r *Resolver) lastFailure(question string) failure {
	if last, ok := r.failures.Get(question); ok {
		return last.(failure) //nolint:forcetypeassert // nothing else is put in
	}
	return failure{delays: wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: math.MaxInt}}
}

// ask asks the registry and remembers what it says, unless it has answered since Resolve looked.
func (r *Resolver) ask(image, question string, credentials Credentials) error {
	if _, _, err := r.known(image, question); !errors.Is(err, ErrPending) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptTimeout)
	defer cancel()
	began := time.Now()
	byDigest, err := r.head(ctx, image, credentials)
	measure.RegistryRequest(resultOf(err), time.Since(began))
	if err != nil {
		f := r.lastFailure(question)
		f.err, f.retryAt = err, r.now().Add(f.delays.Step())
		r.failures.Add(question, f)
		return err
	}
	r.resolved.Add(image, byDigest)
	r.failures.Remove(question)
	return nil
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

// head asks the registry; only the manifest's header is transferred.
func (r *Resolver) head(ctx context.Context, image string, credentials Credentials) (string, error) {
	ref, err := name.ParseReference(image)
	if err != nil {
		return "", fmt.Errorf("%w: %s is no image reference", ErrNotFound, image)
	}
	descriptor, err := remote.Head(ref,
		remote.WithContext(ctx),
		remote.WithAuth(credentials.For(ref.Context())),
		remote.WithTransport(r.transport),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	)
	if err != nil {
		return "", classify(ref.Context().RegistryStr(), err)
	}
	return ref.Context().Digest(descriptor.Digest.String()).Name(), nil
}

// classify returns whether the image or the registry is the problem, with the host that was asked and the cause. What the registry itself writes is left out: it may repeat a URL
// with a token.
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
	if cause := reach.Cause(err); cause != "" {
		return fmt.Errorf("%w: %s: %s", ErrUnavailable, registry, cause)
	}
	return fmt.Errorf("%w: %s does not answer as a registry does", ErrUnavailable, registry)
}
