package release

import (
	"errors"
	"math"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

const (
	// The delay before a failed query is repeated doubles from firstRetry to lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = 5 * time.Minute
	// contentRetry is the delay after ErrNoVersion. The content of a digest does not change, but another version of
	// the manager may read more.
	contentRetry = time.Hour
	// cacheSize limits the cached answers and the cached failures. Far fewer releases are installed at a time.
	cacheSize = 512
)

// query is a request for a fact about an image, with the sources and credentials to use.
type query struct {
	image       string
	sources     Sources
	credentials Credentials
}

// lookups are queries of one kind. They run in the background, and their results are cached.
type lookups struct {
	clock clock.PassiveClock
	// run queries the registries.
	run func(query) (string, error)
	// answerKey is the key of the answer to a query. Queries with the same key get the same answer.
	answerKey func(query) string

	queries  singleflight.Group
	answers  *lru.Cache[string, string]
	failures *lru.Cache[string, failure]
}

type failure struct {
	err     error
	retryAt time.Time
	delays  wait.Backoff
}

func newLookups(clk clock.PassiveClock, answerKey func(query) string, run func(query) (string, error)) *lookups {
	return &lookups{
		clock: clk, run: run, answerKey: answerKey,
		answers: lru.New[string, string](cacheSize), failures: lru.New[string, failure](cacheSize),
	}
}

// failureKey is the key of a failure. Any credentials that a registry accepts give the same answer, so only failures
// depend on the credentials.
func (l *lookups) failureKey(q query) string {
	return q.image + " " + q.sources.Version(q.credentials.digest) + " " + q.credentials.digest
}

// get returns the cached result, or ErrPending. It does not block: done is called when the query ends.
func (l *lookups) get(q query, done func()) (answer string, retryAfter time.Duration, err error) {
	answer, retryAfter, err = l.cached(q)
	if errors.Is(err, ErrPending) {
		go func() {
			_, _, _ = l.queries.Do(l.failureKey(q), func() (any, error) { return nil, l.query(q) })
			done()
		}()
	}
	return answer, retryAfter, err
}

// cached returns the cached answer or failure, or ErrPending if a query is due.
func (l *lookups) cached(q query) (answer string, retryAfter time.Duration, err error) {
	if found, ok := l.answers.Get(l.answerKey(q)); ok {
		return found, 0, nil
	}
	last := l.lastFailure(q)
	if left := last.retryAt.Sub(l.clock.Now()); left > 0 {
		return "", left, last.err
	}
	return "", 0, ErrPending
}

// lastFailure returns the last failure of a query. Without a failure, only the delays are set.
func (l *lookups) lastFailure(q query) failure {
	if last, ok := l.failures.Get(l.failureKey(q)); ok {
		return last
	}
	return failure{delays: wait.Backoff{Duration: firstRetry, Factor: 2, Cap: lastRetry, Steps: math.MaxInt}}
}

// query queries the registries and caches the result, unless another caller has cached a result since get read the
// cache.
func (l *lookups) query(q query) error {
	if _, _, err := l.cached(q); !errors.Is(err, ErrPending) {
		return err
	}
	answer, err := l.run(q)
	if err != nil {
		f := l.lastFailure(q)
		delay := f.delays.Step()
		if errors.Is(err, ErrNoVersion) {
			delay = contentRetry
		}
		f.err, f.retryAt = err, l.clock.Now().Add(delay)
		l.failures.Add(l.failureKey(q), f)
		return err
	}
	l.answers.Add(l.answerKey(q), answer)
	l.failures.Remove(l.failureKey(q))
	return nil
}
