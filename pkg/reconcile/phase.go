// Package reconcile holds what the reconcilers of both providers share: phases, requeues, recent writes that
// the cache lacks, and the limits of status writes.
package reconcile

import (
	"context"
	"errors"
	"time"
)

// Phase does one step of a reconcile, with the facts about an object. It returns false to stop the phases
// that follow; the facts then hold the reason.
type Phase[T any] func(ctx context.Context, known T) (proceed bool, err error)

// Run runs phases in order until one of them stops or fails.
func Run[T any](ctx context.Context, known T, phases ...Phase[T]) error {
	for _, phase := range phases {
		if proceed, err := phase(ctx, known); err != nil || !proceed {
			return err
		}
	}
	return nil
}

// ErrPanicked is the error that is reported after a panic: the phases have no result then.
var ErrPanicked = errors.New("a phase panicked")

// Requeue is when an object is reconciled again without an event, because a point in time cannot be watched.
// The zero value requests no reconcile.
type Requeue struct{ after time.Duration }

// In requests a reconcile after a delay. The shortest delay wins; a delay of zero is ignored.
func (a *Requeue) In(after time.Duration) {
	if after != 0 && (a.after == 0 || after < a.after) {
		a.after = after
	}
}

// Delay returns the delay until the next reconcile; zero is none.
func (a *Requeue) Delay() time.Duration { return a.after }
