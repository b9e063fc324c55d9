package writer

import (
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/internal/scope"
)

// TooOld is the message about a field that the definition of a kind lacks. The definition comes with
// assisted-service.
const TooOld = "assisted-service of this hub does not support this setting: its %s have no %s. Remove the field, or upgrade " +
	"assisted-service"

// Refused records that the API server refused a write of a stage, and repeats the write later.
func (w *Writer) Refused(s *scope.Scope, stage, reason, format string, args ...any) (proceed bool) {
	w.Writer.Refused(&s.Again, stage, s.Config)
	return s.Blockf(stage, reason, format, args...)
}
