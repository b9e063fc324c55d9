package hostconfig

import (
	"fmt"
	"time"
)

// What the API server refused for what it says is asked for again after refusedRetry, then less and less often: it goes
// by the schema of a kind, of which it knows a newer one some time after the definition was changed, and by webhooks.
// No event tells of either.
const (
	refusedRetry    = time.Minute
	maxRefusedRetry = 10 * time.Minute
)

// tooOld says that the definition of a kind, which comes with assisted-service, does not have a field.
const tooOld = "assisted-service of this hub is too old for what is set here: its %s have no %s. Leave that out, or get a newer assisted-service"

// refused records that the API server refused what a stage asks for, and asks for it again later.
func (r *Reconciler) refused(s *scope, stage, reason, format string, args ...any) (bool, error) {
	attempt := fmt.Sprintf("%s %s %d", keyOf(s.Config), stage, s.Config.Generation)
	if !r.refusals.IsInBackOffSinceUpdate(attempt, r.Clock.Now()) { // else an event came meanwhile
		r.refusals.Next(attempt, r.Clock.Now())
		r.refusals.GC()
	}
	s.again.In(r.refusals.Get(attempt))
	return s.wait(stage, reason, format, args...)
}
