// Package reconcile is the vocabulary that the reconcilers of both providers share: phases, when to come back, what was
// written and is not in the cache yet, and what may be reported a little later.
package reconcile

import (
	"context"
	"time"
)

// Phase does one part of the work on what is known of an object. It returns false when what follows has to wait; what
// is known then says for what.
type Phase[T any] func(ctx context.Context, known T) (proceed bool, err error)

// Run runs phases one after the other until one of them has to wait, or fails.
func Run[T any](ctx context.Context, known T, phases ...Phase[T]) error {
	for _, phase := range phases {
		if proceed, err := phase(ctx, known); err != nil || !proceed {
			return err
		}
	}
	return nil
}

// Again is when an object is reconciled again although nothing happens: the end of a time cannot be watched. Its zero value is never.
type Again struct{ after time.Duration }

// In requests a reconcile after a time. The earliest request wins; zero requests none.
func (a *Again) In(after time.Duration) {
	if after != 0 && (a.after == 0 || after < a.after) {
		a.after = after
	}
}

// After is when it is to be; zero is never.
func (a *Again) After() time.Duration { return a.after }
