// Package decision holds the vocabulary of the packages that decide about an installed cluster (removal, scaling, remediation, upgrade): why something is not done
// now, and whether an event arrives when it may be done.
package decision

import (
	"fmt"
	"slices"
	"strings"
)

// Blocker is why something is not done now. Contrary evidence is a Blocker, and so is what is unknown.
type Blocker struct {
	// Reason is that of the condition, Message names the cause and the action.
	Reason, Message string
	// Watched is true when an event arrives at the end of the wait. Otherwise the cluster must be inspected again after a time.
	Watched bool
}

// Wait returns a Blocker whose end no event reports.
func Wait(reason, format string, args ...any) Blocker {
	return Blocker{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Watch returns a Blocker whose end an event reports.
func Watch(reason, format string, args ...any) Blocker {
	return Blocker{Reason: reason, Message: fmt.Sprintf(format, args...), Watched: true}
}

// About puts what is not done before the message.
func (b Blocker) About(format string, args ...any) Blocker {
	b.Message = fmt.Sprintf(format, args...) + ": " + b.Message
	return b
}

// Join returns one Blocker for several, of which there must be one: with the reason of the first, and watched only if all are.
func Join(blockers []Blocker) Blocker {
	messages := make([]string, 0, len(blockers))
	for _, b := range blockers {
		messages = append(messages, b.Message)
	}
	return Blocker{
		Reason:  blockers[0].Reason,
		Message: strings.Join(messages, "; "),
		Watched: !slices.ContainsFunc(blockers, func(b Blocker) bool { return !b.Watched }),
	}
}
