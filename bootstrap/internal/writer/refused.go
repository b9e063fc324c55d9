package writer

import (
	"fmt"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// If the API server refuses the content of a write, the controller repeats the write after RefusedRetry, then less
// and less often. The refusal depends on webhooks, and on the schema of a kind. The API server applies a new
// schema some time after the change of the definition. No event reports either change.
const (
	RefusedRetry    = time.Minute
	MaxRefusedRetry = 10 * time.Minute
)

// TooOld is the message about a field that the definition of a kind lacks. The definition comes with
// assisted-service.
const TooOld = "assisted-service of this hub is too old for what is set here: its %s have no %s. Leave that out, or get a newer " +
	"assisted-service"

// Refused records that the API server refused a write of a stage, and repeats the write later.
func (w *Writer) Refused(s *scope.Scope, stage, reason, format string, args ...any) (bool, error) {
	attempt := fmt.Sprintf("%s %s %d", s.Key(), stage, s.Config.Generation)
	// An attempt within the backoff was caused by an event, and does not count.
	if !w.refusals.IsInBackOffSinceUpdate(attempt, w.clock.Now()) {
		w.refusals.Next(attempt, w.clock.Now())
		w.refusals.GC()
	}
	s.Again.In(w.refusals.Get(attempt))
	return s.Wait(stage, reason, format, args...)
}
