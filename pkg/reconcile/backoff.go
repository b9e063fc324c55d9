package reconcile

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// maxAttempts bounds the keys of a Backoff. An evicted key is attempted without delay.
const maxAttempts = 8192

// Backoff spaces the attempts of actions that nothing reports the success of. The delay after the first attempt
// doubles with each further attempt. It is safe for concurrent use, and a restart of the manager forgets it.
type Backoff struct {
	clock            clock.PassiveClock
	initial, longest time.Duration
	last             *lru.Cache[string, attempt]
}

// attempt is the last attempt of an action, and the delay that follows it.
type attempt struct {
	at    time.Time
	delay time.Duration
}

// NewBackoff returns a Backoff whose delays grow from initial to longest.
func NewBackoff(c clock.PassiveClock, initial, longest time.Duration) *Backoff {
	return &Backoff{clock: c, initial: initial, longest: longest, last: lru.New[string, attempt](maxAttempts)}
}

// RefusedDelay is the delay after which a request is repeated that the API server refused; it doubles up to
// MaxRefusedDelay. A refusal depends on webhooks, on rights, and on the schema of a kind. The API server applies a new
// schema some time after the change of the definition. No event reports any of these changes.
const (
	RefusedDelay    = time.Minute
	MaxRefusedDelay = 10 * time.Minute
)

// NewRefusals returns the Backoff of requests that the API server refused.
func NewRefusals(c clock.PassiveClock) *Backoff { return NewBackoff(c, RefusedDelay, MaxRefusedDelay) }

// Left returns the rest of the delay after the last attempt; zero if the action may be attempted now.
func (b *Backoff) Left(key string) time.Duration {
	last, _ := b.last.Get(key)
	return max(0, last.delay-b.clock.Now().Sub(last.at))
}

// Delay returns the whole delay after the last attempt; zero if no attempt counts any more.
func (b *Backoff) Delay(key string) time.Duration {
	last, _ := b.last.Get(key)
	if b.clock.Now().Sub(last.at) > 2*b.longest {
		return 0
	}
	return last.delay
}

// Record counts an attempt, and returns the delay until the next one. An attempt before the end of the delay was
// caused by an event, and does not count. After two longest delays without attempt, the next one counts as the first.
func (b *Backoff) Record(key string) time.Duration {
	if left := b.Left(key); left > 0 {
		return left
	}
	next := attempt{at: b.clock.Now(), delay: b.initial}
	if last := b.Delay(key); last > 0 {
		next.delay = min(2*last, b.longest)
	}
	b.last.Add(key, next)
	return next.delay
}

// Reset makes the next attempt of an action count as the first one.
func (b *Backoff) Reset(key string) { b.last.Remove(key) }
