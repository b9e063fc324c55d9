// Package release queries registries for release images: their digests, and the versions of Kubernetes in them.
package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/bound"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/dial"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure/lookup"
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
	// ErrRefused reports that the registry accepts no request without other credentials. It is an ErrUnavailable.
	ErrRefused = fmt.Errorf("%w: it refuses the credentials of the pull secret", ErrUnavailable)
)

// NotEncryptedError reports that a registry speaks only plain HTTP, which its Sources do not permit. It is an
// ErrUnavailable.
type NotEncryptedError struct{ Registry string }

// Error implements error.
func (e *NotEncryptedError) Error() string {
	return fmt.Sprintf("%v: %s does not speak TLS, and registries.conf does not set insecure = true for it", ErrUnavailable, e.Registry)
}

// Unwrap returns ErrUnavailable.
func (e *NotEncryptedError) Unwrap() error { return ErrUnavailable }

const (
	// attemptTimeout limits one request to a registry.
	attemptTimeout = 10 * time.Second
	// largestAnswer limits the body of one response of a registry, in bytes, except layers. go-containerregistry reads
	// tokens, errors and manifests whole.
	largestAnswer = 1 << 20
)

// NewTransport returns a transport for a manager: NewUserTransport, which connects to a loopback address only for the given
// registries (host:port). The flags of the manager name them.
func NewTransport(registries ...string) http.RoundTripper {
	own, ok := NewUserTransport().(*http.Transport)
	if !ok {
		return remote.DefaultTransport
	}
	own.DialContext = (&dial.Dialer{Refuse: refuseLoopback, Allowed: registries, Proxy: own.Proxy, Timeout: attemptTimeout}).DialContext
	return own
}

// errLoopback reports that a connection to a loopback address was refused.
var errLoopback = errors.New("loopback addresses are refused")

// refuseLoopback refuses the addresses of the manager's Pod. The registries.conf of a tenant, DNS entries, redirects and
// token servers of a registry could name such an address. The conditions would then show the tenant which ports of the Pod
// are open.
func refuseLoopback(ip netip.Addr) error {
	if dial.IsLoopback(ip) {
		return errLoopback
	}
	return nil
}

// NewUserTransport returns the transport of go-containerregistry with limits. It honors the proxy variables of the
// environment. It is for programs of users: a loopback address is a server of the user.
func NewUserTransport() http.RoundTripper {
	shared, ok := remote.DefaultTransport.(*http.Transport)
	if !ok {
		return remote.DefaultTransport
	}
	own := shared.Clone()
	own.MaxResponseHeaderBytes, own.OnProxyConnectResponse = bound.HeaderBytes, reach.ProxyAnswer
	return own
}

// queryEach queries the registries in order until one has the image.
func queryEach[T any](ctx context.Context, q query, queryOne func(context.Context, origin) (T, error)) (T, error) {
	var failures []registryFailure
	var none T
	for _, image := range q.sources.images(q.image) {
		at, err := originOf(q, image)
		if err != nil {
			failures = append(failures, registryFailure{bound.Value(image), err})
			continue
		}
		answer, err := queryOne(ctx, at)
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
func resultOf(err error) lookup.Result {
	switch {
	case err == nil:
		return lookup.Found
	case errors.Is(err, ErrNotFound):
		return lookup.NotFound
	case errors.Is(err, ErrRefused):
		return lookup.Refused
	case errors.Is(err, errBlocked):
		return lookup.Blocked
	}
	return lookup.Unavailable
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
func (r *Reader) head(ctx context.Context, at origin) (string, error) {
	descriptor, err := remote.Head(at.ref, append(r.options(at), remote.WithContext(ctx))...)
	if err != nil {
		return "", classify(at.host(), err, attemptTimeout)
	}
	return descriptor.Digest.String(), nil
}

// options returns the options of all requests to a registry: its credentials, and a transport with limits.
func (r *Reader) options(at origin) []remote.Option {
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
		return fmt.Errorf("%w (%s answers %d %s)", ErrRefused, registry, answer.StatusCode, http.StatusText(answer.StatusCode))
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
		return &NotEncryptedError{Registry: registry}
	}
	return fmt.Errorf("%w: %s does not answer as a registry does", ErrUnavailable, registry)
}
